/** The stream of a send (platform/values/stream.ts), and what its mail is composed with. */
import type { Stream } from '#accounts/rows/streams.ts';
import { requireStream } from '#accounts/sender.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import { isStreamName, storedStream } from '#platform/values/stream.ts';
import type { Sender, SendRequest } from './requested-send.ts';

export interface SendStreamParts {
  findStream(orgId: string, name: string): Promise<Stream | null>;
  /** At which mail is taken in that unsubscribes; null: none is. */
  unsubscribeDomain?: string | null;
}

/** Mail that names no stream, by a key that names none, costs no look-up. */
export async function streamOf(
  { findStream }: Pick<SendStreamParts, 'findStream'>,
  request: SendRequest,
  caller: Sender,
): Promise<Stream | null> {
  const name = storedStream(request.stream === undefined ? caller.stream : request.stream);
  if (name === null) return null;
  // What other services take may be any text, of any length.
  return requireStream(name, isStreamName(name) ? await findStream(caller.orgId, name) : null);
}

/** Notes that bulk mail is sent without one-click unsubscribe, because its stream does not add it. */
export function withBulkNote(request: SendRequest, stream: Stream | null): SendRequest {
  const { lacking, onLacksOneClick } = request;
  if (lacking === undefined || (lacking === 'List-Unsubscribe' && stream?.kind === 'subscribed'))
    return request;
  onLacksOneClick?.();
  return { ...request, lacksOneClick: true };
}

/** For mail that people subscribe to. */
export function subscriptionOf(
  { unsubscribeDomain }: Pick<SendStreamParts, 'unsubscribeDomain'>,
  { stream, isTest, recipients }: Send,
) {
  return {
    stream: stream!,
    isTest,
    addresses: recipients.map(({ address }) => address),
    mailDomain: unsubscribeDomain ?? null,
  };
}
