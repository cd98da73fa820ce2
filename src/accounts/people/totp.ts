/**
 * The second factor: time-based codes (RFC 6238) from an app, and recovery codes for a lost phone. A code works once; the phone's
 * clock may be off by one step.
 */
import { hash, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';

const stepSeconds = 30;
const issuer = 'Postern';

/** In base32, the format that apps accept. */
export function newTotpSecret(): string {
  return new Secret({ size: 20 }).base32;
}

/** The content of the QR code. */
export function totpUri(secret: string, email: string): string {
  return totp(secret, email).toString();
}

/** The time step of the code; null if the code is wrong. */
export function totpStepOf(secret: string, code: string, now: number): number | null {
  const token = code.replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const delta = totp(secret, '').validate({ token, timestamp: now, window: 1 });
  return delta === null ? null : Math.floor(now / 1000 / stepSeconds) + delta;
}

function totp(secret: string, label: string): TOTP {
  return new TOTP({ issuer, label, secret: Secret.fromBase32(secret), period: stepSeconds });
}

const codeCount = 10;
/** Without letters and digits that look alike. */
const letters = 'abcdefghjkmnpqrstuvwxyz23456789';

export function newRecoveryCodes(): { codes: string[]; hashes: string[] } {
  const codes = Array.from({ length: codeCount }, newCode);
  return { codes, hashes: codes.map(recoveryCodeHash) };
}

/** 16 characters of 31 are 79 bits: too many to guess, so a fast hash is enough. */
function newCode(): string {
  const taken: string[] = [];
  while (taken.length < 16) {
    const [byte] = randomBytes(1);
    // The remainder of a larger byte would favour the first letters.
    if (byte! < letters.length * 8) taken.push(letters[byte! % letters.length]!);
  }
  return taken.join('').replace(/(.{4})(?=.)/g, '$1-');
}

export function recoveryCodeHash(code: string): string {
  return hash('sha256', code.toLowerCase().replaceAll(/[^a-z0-9]/g, ''));
}
