/** Makes control characters visible in text from outside: replies, subjects, names. */
export function legible(text: string): string {
  return text.replace(/\p{Cc}/gu, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
