/** Whether quoted-printable is better than base64 for a text that is not ASCII: it is if most letters are Latin. */
export function isMostlyLetters(text: string): boolean {
  let letters = 0;
  let others = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at) | 0x20;
    if (code >= 0x61 && code <= 0x7a) letters++;
    else if (code >= 0x80) others++;
  }
  return others < letters;
}
