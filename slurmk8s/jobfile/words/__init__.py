"""Everything the check can say, in English and Korean side by side: whoever changes one sees the other.

`{…}` are values of the finding or phrases. In Korean a particle must not depend on how a value ends: hence
"--{name} 옵션은", "다음 중 하나: {names}" or "{folder} 폴더는".
"""

from slurmk8s.jobfile.words import body, directives, file, image, k8s, limits, options, values
from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

__all__ = ["FINDINGS", "PHRASES", "TOPICS", "Words"]

TOPICS = (file, directives, options, values, image, k8s, limits, body)

FINDINGS: Findings = {key: said for topic in TOPICS for key, said in topic.FINDINGS.items()}
PHRASES: Phrases = {key: said for topic in TOPICS for key, said in topic.PHRASES.items()}
