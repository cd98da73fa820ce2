/** The text with its first letter in upper case, unless it begins with a name or a record, such as `example.com` or `v=spf1`. */
export function capital(text: string): string {
  if (!/^[\p{L}'’-]+(?=$|[\s,;:)]|\.(\s|$))/u.test(text)) return text;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
