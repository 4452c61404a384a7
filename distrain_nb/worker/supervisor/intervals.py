"""How long a supervisor waits for what."""

from __future__ import annotations

OTHERS_FAIL_WITHIN_S = 0.3
# A rank may wait for others when it has failed: JAX's says goodbye to all of them first.
FAILED_RANK_ENDS_WITHIN_S = 10.0
# A worker fails when the primary ends, which is success, and a while before that can be seen.
PRIMARY_ENDS_WITHIN_S = 5.0
TURN_S = 0.1
DRAIN_S = 1.0
LOOK_EVERY_S = 0.5
LAST_STATUS_WITHIN_S = 5.0
# A store that is mounted anew may be away for a moment.
DELETED_AFTER_S = 5.0
# Reducers of a job that has succeeded say what they have done, which a busy machine makes long.
REDUCERS_END_WITHIN_S = 30.0
