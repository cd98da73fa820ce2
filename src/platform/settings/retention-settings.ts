/** The settings of how long things are kept, and of credits. */
import { none } from './defaults.ts';
import { duration, durationOrNone, longDuration } from './durations.ts';
import { anyText, byteSize, wholeNumber, wholeNumberOr } from './grammar.ts';
import { computed, setting } from './setting.ts';

export const retentionSettings = {
  idempotencyKeep: setting(duration, {
    name: 'POSTERN_IDEMPOTENCY_KEEP',
    default: '24h',
    description:
      'Time that an idempotency key is remembered; a repeated request within it does not send the mail twice.',
  }),
  keepMessages: setting(durationOrNone, {
    name: 'POSTERN_KEEP_MESSAGES',
    default: '24h',
    description:
      'Time that a message is kept for `postern email source` after its last delivery is final; 0 deletes it at once.',
  }),
  keepEvents: setting(duration, {
    name: 'POSTERN_KEEP_EVENTS',
    default: '30d',
    description:
      'Time that events, attempts, SMTP transcripts, and webhook messages with their attempts are kept.',
  }),
  keepEmails: computed(longDuration, none, {
    name: 'POSTERN_KEEP_EMAILS',
    default: 'forever',
    example: '730d',
    description:
      'Time that emails and their final status are kept; an email with an unfinished delivery is always kept.',
  }),
  keepReceived: setting(duration, {
    name: 'POSTERN_KEEP_RECEIVED',
    default: '7d',
    description: 'Time that received mail, which comes in for an application, is kept.',
  }),
  receivedStore: setting(byteSize, {
    name: 'POSTERN_RECEIVED_STORE',
    default: '1G',
    description:
      'Maximum size of the received mail that is kept for one organization; further mail is deferred (452) until the oldest is deleted.',
  }),
  receivedPerMinute: setting(wholeNumber('a number of mails', 1, 1_000_000), {
    name: 'POSTERN_RECEIVED_PER_MINUTE',
    default: '1200',
    description:
      'Maximum received mail of one organization in a minute on each node. One route takes three quarters of it, one sender as much as is free beside its own, which is half if it is alone. Further mail is deferred (451).',
  }),
  backups: setting(wholeNumberOr('off', 'a number of backups', 1, 366), {
    name: 'POSTERN_BACKUPS',
    default: '7',
    description:
      'Number of nightly backups of the SQLite database that are kept, or off. They take as much disk space as that many databases; PostgreSQL has tools of its own.',
  }),
  backupDir: computed(anyText, none, {
    name: 'POSTERN_BACKUP_DIR',
    default: '`backups` in the data directory',
    example: '/var/backups/postern',
    description:
      'Directory of the nightly backups, on another disk if there is one; the service must be able to write to it.',
  }),
  creditsLow: setting(wholeNumber('a percentage', 0, 100), {
    name: 'POSTERN_CREDITS_LOW',
    default: '10',
    description: 'Remaining percentage of the quota at which the event credits.low is sent.',
  }),
};
