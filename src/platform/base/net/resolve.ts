/** Looks up DNS records; mail/deliver/route/resolver.ts makes one. */

/** Resolves to records in the forms of node:dns. Rejects with ENODATA or ENOTFOUND if the name has none. */
export type Resolve = (name: string, type?: string) => Promise<unknown[]>;

/** Whether DNS answered that the name has no such records; with another error it gave no answer. */
export function isNoRecord(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENODATA' || code === 'ENOTFOUND';
}

/** Empty if the name has no such records. Rejects if DNS gave no answer. */
export async function recordsOf<T>(name: string, type: string, resolve: Resolve): Promise<T[]> {
  try {
    return (await resolve(name, type)) as T[];
  } catch (error) {
    if (isNoRecord(error)) return [];
    throw error;
  }
}

/** Without letter case and the root's dot, in which names may differ. */
export function normalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
