/**
 * A search that no index answers: reads page by page and keeps the matches, until `limit` is found or `maxScanned` rows are
 * read. Other statements have their turn between two pages.
 */
interface PagedSearch<Found> {
  read(after: string | null, limit: number): Promise<Found[]>;
  positionOf(found: Found): string;
  isWanted(found: Found): boolean;
  after: string | null;
  limit: number;
  maxScanned: number;
  pageSize: number;
}

/** `next`: the key to continue after; null: that was all. */
export async function pagedSearch<Found>(
  search: PagedSearch<Found>,
): Promise<{ found: Found[]; next: string | null }> {
  const { positionOf, limit, maxScanned, pageSize } = search;
  const found: Found[] = [];
  let { after } = search;
  for (let scanned = 0; scanned < maxScanned; scanned += pageSize) {
    const page = await search.read(after, pageSize);
    for (const one of page) {
      if (found.length === limit) return { found, next: positionOf(found.at(-1)!) };
      if (search.isWanted(one)) found.push(one);
    }
    if (page.length < pageSize) return { found, next: null };
    after = positionOf(page.at(-1)!);
  }
  return { found, next: after };
}
