/**
 * Tells systemd the state of this process (sd_notify(3)): ready, reloading, stopping, alive. Node cannot open the datagram
 * socket of NOTIFY_SOCKET, so scripts/notify-socket.pl opens it before it becomes Node, and passes its descriptor: a message
 * costs one write, and no second process runs. Without a descriptor, nothing is sent.
 */
import { write } from 'node:fs';
import type { Clock } from '#platform/base/clock.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** More than one, so that a single lost message does not make the watchdog end the process. */
const beatsPerTimeout = 3;

export function createServiceManager(clock: Clock, env: Environment = process.env) {
  const descriptor = Number(env.NOTIFY_FD);
  const watchdogMs = Number(env.WATCHDOG_USEC) / 1000;
  let last = Promise.resolve();

  /** One message after the other, because a full socket holds up the thread that writes to it. */
  function notify(...lines: string[]): void {
    if (!descriptor) return;
    const send = () => new Promise<void>((resolve) => write(descriptor, lines.join('\n'), () => resolve()));
    last = last.then(send);
  }

  return {
    ready: () => notify('READY=1'),
    /** `ready` must follow. systemd compares the time with its own monotonic clock. */
    reloading: () => notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`),
    stopping: () => notify('STOPPING=1'),
    /** Reports several times in each WatchdogSec= that the process is alive, if `isAlive` returns true. */
    startWatchdog(isAlive: () => boolean): void {
      if (!descriptor || !(watchdogMs > 0)) return;
      const beat = () => {
        if (isAlive()) notify('WATCHDOG=1');
        clock.after(watchdogMs / beatsPerTimeout, beat);
      };
      beat();
    },
  };
}
