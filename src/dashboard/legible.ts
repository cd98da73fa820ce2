/** What strangers wrote (replies, subjects, names), made fit to be read: control characters come out visible. */
export function legible(text: string): string {
  return text.replace(/\p{Cc}/gu, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
