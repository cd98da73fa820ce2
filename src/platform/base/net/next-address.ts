/**
 * How long a connection of this process waits for one address of a host before it turns to the next. Node's quarter of a second is
 * less than a host on another continent needs, or one that is busy: it would be given up at each address but the last.
 */
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

setDefaultAutoSelectFamilyAttemptTimeout(2_000);
