/**
 * Bodies that a client has compressed (RFC 9110 section 8.4). Only codings that need some kilobytes of memory are decoded: a
 * Zstandard frame of a few bytes can demand 128 MB.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { Refusal } from '#platform/values/refusal.ts';

const decoders = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate };

/** The bytes of the body before they were compressed. `stop` must be called when no more are read. */
export function decodedBody(request: IncomingMessage): { source: Readable; stop(): void } {
  const coding = (request.headers['content-encoding'] ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return { source: request, stop: () => {} };
  if (!Object.hasOwn(decoders, coding)) {
    const shown = JSON.stringify(coding.slice(0, 50));
    throw new Refusal(
      'BAD_REQUEST',
      `Content-Encoding ${shown} is not supported. Send the body with gzip or deflate, or without compression.`,
    );
  }
  const decoder = decoders[coding as keyof typeof decoders]();
  const onClose = () => {
    if (!request.complete) decoder.destroy(new Error('the connection ended'));
  };
  request.once('close', onClose);
  request.pipe(decoder);
  return {
    source: decoder,
    stop() {
      request.off('close', onClose);
      request.unpipe(decoder);
      // A late error has no reader any more.
      decoder.on('error', () => {});
      decoder.destroy();
    },
  };
}
