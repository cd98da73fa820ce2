/**
 * A due delivery becomes an attempt with a verdict: find the hosts, offer the message to one after the other, one
 * conversation each, until outcome.ts says that the word is final.
 *
 * Orders the steps and decides nothing itself. Never throws: trouble of our own is a deferral that says so. Reads
 * and writes no database; the message's bytes come from `readMessage`.
 */
import { orAborted } from './abort.ts';
import { envelopeAddress } from './address.ts';
import type { Clock } from './clock.ts';
import type { Attempt, Delivery, Peer, TlsUsed } from './nouns.ts';
import { type Ending, type Judgement, judge } from './outcome.ts';
import type { Connect } from './route/connect.ts';
import type { FindRoute, Host } from './route/mx.ts';
import { converse, type Report, type Timeouts } from './smtp/session.ts';
import { createTranscript, type Transcript } from './smtp/transcript.ts';

export interface DeliverParts {
  findRoute: FindRoute;
  connect: Connect;
  readMessage(messageId: string): Promise<Buffer>;
  /** The envelope sender of a delivery (VERP), so that a bounce names it. */
  returnPath(deliveryId: string): string;
  /** Told of each conversation, for the mail log. */
  onAttempted(delivery: Delivery, offer: Offer): void;
  clock: Clock;
  /** Our name in EHLO. */
  hostname: string;
  port: number;
  timeouts: Timeouts;
}

/** What came of offering the message to one host. */
export interface Offer {
  peer: Peer | null;
  tls: TlsUsed | null;
  ending: Ending;
  judgement: Judgement;
  ms: number;
}

const stoppedText = 'this server was stopped during the attempt';

interface Errand {
  delivery: Delivery;
  message: Buffer;
  transcript: Transcript;
  stopped: AbortSignal;
}

export function createDeliver(parts: DeliverParts) {
  const { clock } = parts;

  async function deliver(delivery: Delivery, stopped: AbortSignal): Promise<Attempt> {
    const startedAt = clock.now();
    const transcript = createTranscript(() => performance.now());
    const offer = await tryAll({ delivery, transcript, stopped }).catch((error) => {
      const kind = stopped.aborted ? 'interrupted' : 'internal';
      const detail = stopped.aborted ? stoppedText : `trouble of our own: ${error.message}`;
      transcript.add('note', detail);
      return offerOf(null, { kind, detail, afterDot: false });
    });
    return attemptOf(offer, startedAt, transcript);
  }

  async function tryAll(errand: Omit<Errand, 'message'>): Promise<Offer> {
    const { delivery, transcript, stopped } = errand;
    const route = await orAborted(parts.findRoute(delivery.domain), stopped);
    if ('ending' in route) {
      const offer = offerOf(null, route.ending);
      transcript.add('note', offer.judgement.verdict.diagnostic);
      return told(delivery, offer);
    }
    const message = await parts.readMessage(delivery.messageId);
    let best: Offer | null = null;
    for (const host of route.hosts) {
      const offer = told(delivery, await offerTo(host, { ...errand, message }));
      best = best ? betterOf(best, offer) : offer;
      if (!offer.judgement.tryNextHost || stopped.aborted) break;
    }
    return best!;
  }

  /** One host: TLS where it offers it and, where its handshake fails, once more in clear (RFC 7435). */
  async function offerTo(host: Host, errand: Errand): Promise<Offer> {
    const peer = { host: host.name, address: host.address, port: parts.port };
    const started = performance.now();
    let report = await talk(host, errand, true);
    if (report.ending.kind === 'tls-failed' && !errand.stopped.aborted) {
      errand.transcript.add('note', `${report.ending.detail}; once more in clear`);
      report = await talk(host, errand, false);
    }
    return { ...offerOf(peer, report.ending, report.tls), ms: performance.now() - started };
  }

  async function talk(host: Host, errand: Errand, startTls: boolean): Promise<Report> {
    const { delivery, message, transcript, stopped } = errand;
    transcript.add('note', `connecting to ${host.name} [${host.address}]:${parts.port}`);
    const connecting = parts.connect(host);
    try {
      const socket = await orAborted(connecting, stopped);
      return await converse({
        socket,
        host: host.name,
        name: parts.hostname,
        envelope: { from: parts.returnPath(delivery.id), to: envelopeAddress(delivery.recipient) },
        message,
        startTls,
        timeouts: parts.timeouts,
        transcript,
        stopped,
      });
    } catch (error) {
      if (stopped.aborted) {
        connecting.then((socket) => socket.destroy()).catch(() => {});
        throw error;
      }
      const detail = (error as Error).message;
      transcript.add('note', detail);
      return { ending: { kind: 'unreachable', detail }, tls: null };
    }
  }

  function told(delivery: Delivery, offer: Offer): Offer {
    parts.onAttempted(delivery, offer);
    return offer;
  }

  function attemptOf(offer: Offer, startedAt: number, transcript: Transcript): Attempt {
    const { ending } = offer;
    return {
      startedAt,
      endedAt: clock.now(),
      verdict: offer.judgement.verdict,
      reply: 'reply' in ending ? ending.reply : null,
      mx: offer.peer,
      tls: offer.tls,
      transcript: transcript.lines,
    };
  }

  /** What a dead process was doing: nobody knows how far it got, so the message may have been taken. */
  function interrupted(): Attempt {
    const detail = 'the server stopped during this attempt; whether the message was taken is not known';
    const now = clock.now();
    const transcript = createTranscript(() => now);
    transcript.add('note', detail);
    return attemptOf(offerOf(null, { kind: 'interrupted', detail, afterDot: true }), now, transcript);
  }

  return { deliver, interrupted };
}

function offerOf(peer: Peer | null, ending: Ending, tls: TlsUsed | null = null): Offer {
  return { peer, tls, ending, judgement: judge(ending), ms: 0 };
}

/**
 * Of two hosts' answers the one that tells more: a final word; among deferrals the one with a reply; else the later.
 * A refusal that the next host might not share (`bounced`, but try on) yields to any deferral: doubt.
 */
function betterOf(earlier: Offer, later: Offer): Offer {
  if (!later.judgement.tryNextHost) return later;
  const isDeferral = (offer: Offer) => offer.judgement.verdict.outcome === 'deferred';
  if (isDeferral(earlier) !== isDeferral(later)) return isDeferral(earlier) ? earlier : later;
  return 'reply' in earlier.ending && !('reply' in later.ending) ? earlier : later;
}
