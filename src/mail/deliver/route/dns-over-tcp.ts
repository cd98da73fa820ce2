/** One DNS message and its answer over TCP (RFC 7766), each after its length in two bytes, which bounds it. */
import net from 'node:net';

export interface DnsServer {
  host: string;
  port: number;
}

/** `127.0.0.1:53`, `[::1]:53`, and from node:dns also `127.0.0.1` and `::1`. */
export function parseServer(text: string): DnsServer {
  if (net.isIP(text)) return { host: text, port: 53 };
  const [, v6, v4, port] = /^(?:\[(.+)\]|(.+)):(\d+)$/.exec(text)!;
  return { host: (v6 ?? v4)!, port: Number(port) };
}

/** The message of an error says what the server did, without its name. */
export function askOverTcp(server: DnsServer, packet: Buffer, timeoutMs: number): Promise<Buffer> {
  const socket = net.connect(server);
  let timer: NodeJS.Timeout;
  let received: Buffer = Buffer.alloc(0);
  return new Promise<Buffer>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('did not answer over TCP')), timeoutMs);
    socket.on('error', (error) => reject(new Error(`could not be asked over TCP: ${error.message}`)));
    socket.on('close', () => reject(new Error('closed the connection')));
    socket.on('connect', () => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(packet.length);
      socket.write(Buffer.concat([length, packet]));
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return;
      resolve(received.subarray(2, 2 + received.readUInt16BE()));
    });
  }).finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}
