from decimal import Decimal

import pytest

from slurmk8s.kube.quantity import bytes_of, millicores, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        (4, "4"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("-1", "-1"),
        ("500m", "0.5"),
        ("250u", "0.00025"),
        ("1n", "0.000000001"),
        ("2k", "2000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1000000000000000000"),
        ("16Gi", "17179869184"),
        ("1.5Gi", "1610612736"),
        ("1Ei", "1152921504606846976"),
        ("128974848000m", "128974848"),
    ],
)
def test_every_suffix_of_kubernetes_is_understood(text: str | int, value: str) -> None:
    assert number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "Gi", "4GB", "1 Gi", "0x10", "1e", "4gi", "١"])
def test_what_is_no_quantity_is_an_error_that_shows_some(text: str) -> None:
    with pytest.raises(ValueError, match="500m or 16Gi"):
        number(text)


def test_fractions_are_rounded_up_as_kubernetes_does() -> None:
    assert bytes_of("1.5") == 2
    assert bytes_of("100m") == 1
    assert millicores("100u") == 1
    assert millicores("2") == 2000
    assert millicores("1500m") == 1500
