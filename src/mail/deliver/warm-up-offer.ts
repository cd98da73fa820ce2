/** Offers a mail from the addresses that the plan of new ones allows now (warm-up.ts), and tells the plan what became of it. */
import { isIPv6 } from 'node:net';
import { classify } from './outcome.ts';
import type { Connect } from './route/connect.ts';
import type { DeliveryJob, Offer, Report } from './smtp-out/offer.ts';
import type { Leave, WarmUps } from './warm-up.ts';

const detail = 'an address of this server is new to the receiver and has used its allowance of today';

export function createWarmUpOffer(warmUps: WarmUps, port: number) {
  /** Our addresses that the system has chosen last: for IPv6 (true) and IPv4. */
  const chosen = new Map<boolean, string>();

  return {
    /** Notes which address the system chooses if none is set. */
    connecting:
      (connect: Connect): Connect =>
      async (...call) => {
        const opened = await connect(...call);
        const { localAddress } = opened.socket;
        if (opened.source === null && localAddress) chosen.set(isIPv6(opened.address), localAddress);
        return opened;
      },
    offering:
      (offer: Offer): Offer =>
      (job) =>
        offerAllowed(offer, job, new Set()),
  };

  /** `except`: our addresses that were tried in vain. */
  async function offerAllowed(offer: Offer, job: DeliveryJob, except: Set<string>): Promise<Report> {
    const leave = await leaveFor(job, except);
    if (leave === null) return offer(job);
    if ('waitMs' in leave) return putOff(job, leave.waitMs);
    const report = await offerWithin(offer, job, leave);
    const mayHaveOthers = leave.tried.size > 0 || leave.wasLate();
    if (report.result.kind !== 'no-source' || !mayHaveOthers) return report;
    // It may have to wait for an address that works and has used its allowance.
    return offerAllowed(offer, job, new Set([...except, ...leave.tried]));
  }

  function leaveFor({ from, destination, targets, delivery }: DeliveryJob, except: Set<string>) {
    const hosts = targets.flatMap(({ addresses }) => addresses);
    return warmUps.admit(delivery, { pool: from.pool, destination: destination.name, hosts, except });
  }

  async function offerWithin(offer: Offer, job: DeliveryJob, leave: Leave): Promise<Report> {
    try {
      const report = await offer({ ...job, from: { ...job.from, pool: leave.pool, allowance: leave } });
      const { source, peer, result } = report;
      const address = source ?? chosen.get(isIPv6(peer.address));
      const { verdict, signal } = classify(result);
      const isOffered = result.kind !== 'unreachable' && result.kind !== 'no-source';
      if (isOffered && address !== undefined) leave.note(address, verdict, signal);
      return report;
    } finally {
      leave.end();
    }
  }

  function putOff({ targets: [{ name, addresses }], transcript }: DeliveryJob, waitMs: number): Report {
    transcript.add('note', detail);
    const peer = { host: name, address: addresses[0]!, port };
    return { result: { kind: 'put-off', waitMs, detail }, peer, source: null, tls: null, trial: null };
  }
}
