"""What every table of the configuration is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the file. Unknown keys are errors: a misspelt limit must not silently be the default."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
