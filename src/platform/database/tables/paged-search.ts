/**
 * A search that no index answers: reads page by page and keeps the matches, until `limit` is found or `maxScanned` rows are
 * read. Other statements have their turn between two pages.
 */
interface PagedSearch<Found> {
  /** A page that is shorter than `limit` is the last one, unless `isCut`. */
  read(after: string | null, limit: number): Promise<{ rows: Found[]; isCut?: boolean }>;
  positionOf(found: Found): string;
  /** The number of rows that a row counts as; 1 unless it is given. */
  weightOf?(found: Found): number;
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
  const { positionOf, limit, maxScanned, pageSize, weightOf = () => 1 } = search;
  const found: Found[] = [];
  let { after } = search;
  for (let scanned = 0; scanned < maxScanned; ) {
    const { rows, isCut } = await search.read(after, pageSize);
    for (const one of rows) {
      if (found.length === limit) return { found, next: positionOf(found.at(-1)!) };
      if (search.isWanted(one)) found.push(one);
      scanned += weightOf(one);
    }
    if (rows.length < pageSize && !isCut) return { found, next: null };
    after = positionOf(rows.at(-1)!);
  }
  return { found, next: after };
}
