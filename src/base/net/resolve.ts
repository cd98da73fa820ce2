/** Looks up DNS records; route/resolver.ts makes one. */

/** Resolves to records in the forms of node:dns. Rejects with ENODATA or ENOTFOUND if the name has none. */
export type Resolve = (name: string, type?: string) => Promise<unknown[]>;
