/** The needs of this server itself: a running process, disk space, valid certificates, source addresses, a recent backup. */

import { join } from 'node:path';
import { readNoEgress } from '#mail/queue/rows/ip-pools.ts';
import { oldestDue } from '#mail/queue/rows/queue-counts.ts';
import type { DestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { backupDirectory } from '#operate/backup/nightly-backups.ts';
import { listCertificates } from '#operate/certificates/rows/certificates-table.ts';
import { certificateState, maxListed } from '#operate/condition/certificate-state.ts';
import { maxBackupAgeMs } from '#operate/doctor/checks/backup-age.ts';
import { checkCertificate } from '#operate/doctor/checks/certificate.ts';
import { checkDiskSpace } from '#operate/doctor/checks/disk.ts';
import type { FindingDraft } from '#operate/doctor/finding.ts';
import { realSurroundings, type Surroundings } from '#operate/doctor/surroundings.ts';
import { capital } from '#platform/base/capital.ts';
import { span } from '#platform/base/span.ts';
import { readLastBackup } from '#platform/database/admin/last-backup.ts';
import { readLastLeap } from '#platform/database/admin/last-leap.ts';
import { isLocked, lockedText } from '#platform/database/admin/usable.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { startService } from '#platform/settings/installation.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { type Need, thisServer } from './need.ts';

export interface ServerParts {
  db: Db;
  config: Config;
  statuses: DestinationStatuses;
  now: number;
  /** Tries to take SQLite's write lock, which only a program beside the server can do without delaying its mail. */
  triesLock?: boolean;
  surroundings?: Pick<Surroundings, 'freeBytes'>;
}

type Entry = Pick<Need, 'cause' | 'figure' | 'advice' | 'command'> & Partial<Need>;

/** Most of them need action. */
function needOfServer(entry: Entry): Need {
  return { severity: 'act', subject: thisServer, since: null, path: '/doctor', ...entry };
}

export async function readServerNeeds(parts: ServerParts): Promise<Need[]> {
  const { config, now, surroundings } = parts;
  const disk = await checkDiskSpace(config, { ...realSurroundings, ...surroundings });
  const certificate = await checkCertificate(config, now);
  return [
    ...(await runningNeed(parts)),
    ...(await lockedNeed(parts)),
    ...leapNeed(config, now),
    ...findingNeed('disk', disk, `df -h ${shellWord(config.dataDir)}`),
    // A self-signed certificate is a choice, which the doctor reports.
    ...(config.tlsCert === null ? [] : findingNeed('certificate', certificate, 'postern doctor')),
    ...(await certificateNeeds(parts)),
    ...(await sourceNeed(parts)),
    ...backupNeed(config, now),
  ];
}

async function runningNeed({ db, statuses, now }: ServerParts): Promise<Need[]> {
  if (statuses.isServed) return [];
  const since = await oldestDue(db, now);
  const need = needOfServer({
    cause: 'no_server',
    since,
    figure: since === null ? 'no mail is due' : `mail has been due for ${span(now - since)}`,
    advice: 'No server is running, so no mail is accepted or sent. Start one.',
    command: startService,
  });
  return [need];
}

async function lockedNeed({ db, config, triesLock = false }: ServerParts): Promise<Need[]> {
  if (!triesLock || !(await isLocked(db))) return [];
  const need = needOfServer({
    cause: 'locked',
    figure: lockedText,
    advice: 'Find out which program it is, and stop it: Postern goes on by itself.',
    command: `fuser -v ${shellWord(join(config.dataDir, 'postern.sqlite'))}`,
  });
  return [need];
}

const leapShownMs = 86_400_000;

/** After a sleep of the machine the clock is right; after a wrong time server it is not, and mail was expired too early. */
function leapNeed({ dataDir }: Config, now: number): Need[] {
  const leap = readLastLeap(dataDir);
  // A clock that was set back since has undone it.
  if (leap === null || leap.at > now || now - leap.at > leapShownMs) return [];
  const need = needOfServer({
    cause: 'clock',
    severity: 'watch',
    since: leap.at,
    figure: `it leapt forward by ${span(leap.byMs)}`,
    advice:
      'The machine may have slept. If not, the clock is wrong now or was before: the doctor compares it with time servers.',
    command: 'postern doctor',
  });
  return [need];
}

function findingNeed(
  cause: 'disk' | 'certificate',
  { verdict, found, advice }: FindingDraft,
  command: string,
): Need[] {
  if (verdict !== 'failure' && verdict !== 'warning') return [];
  const sentence = `${capital(advice ?? '')}.`;
  return [needOfServer({ cause, figure: found, advice: sentence, command })];
}

/** The certificates by ACME. */
async function certificateNeeds({ db, config, now }: ServerParts): Promise<Need[]> {
  if (config.acme === null) return [];
  const rows = await listCertificates(db, { now, limit: maxListed });
  return rows.flatMap((row) => {
    const { severity, figure, advice } = certificateState(row, config, now);
    if (severity === 'ok' || advice === null) return [];
    const command =
      row.problem!.type === 'rateLimited'
        ? 'postern certificate list'
        : `postern certificate retry ${row.host}`;
    return [
      needOfServer({
        cause: 'certificate',
        severity,
        subject: row.host,
        since: row.failingSince,
        figure,
        advice,
        command,
      }),
    ];
  });
}

/** Counts only if a pool is missing, which is rare. */
async function sourceNeed({ db, statuses }: ServerParts): Promise<Need[]> {
  const counts = new Map<string, number>();
  for (const { pool, count } of await readNoEgress(db, statuses.missingPools))
    counts.set(pool, (counts.get(pool) ?? 0) + count);
  return [...counts].map(([pool, count]) =>
    needOfServer({
      cause: 'no_source',
      subject: pool,
      figure: `${count} waiting`,
      advice:
        'No running node has an address in this IP pool. Add one to POSTERN_MTA_SOURCES, or let the organizations send from another pool.',
      command: 'postern doctor',
    }),
  );
}

/** Only if there was one: a new server has none before its first night, and a server may be backed up by other programs. */
function backupNeed(config: Config, now: number): Need[] {
  const last = config.databaseUrl === null ? readLastBackup(config.dataDir) : null;
  if (last === null || now - last.at <= maxBackupAgeMs(config)) return [];
  if (config.backups !== null) {
    const need = needOfServer({
      cause: 'backup',
      since: last.at,
      figure: `the last one is ${span(now - last.at)} old`,
      advice: `No nightly backup to ${backupDirectory(config)} succeeds. The log says why.`,
      command: 'postern doctor',
    });
    return [need];
  }
  const need = needOfServer({
    cause: 'backup',
    since: last.at,
    figure: `the last one is ${span(now - last.at)} old`,
    advice: `It went to ${last.file ?? 'standard output'}. If a timer makes backups, find out why it no longer does.`,
    command: `postern backup ${last.file === null ? 'FILE' : `${shellWord(last.file)} --force`}`,
  });
  return [need];
}
