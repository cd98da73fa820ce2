/**
 * Room in an LRUCache for so many entries, taken as they come. With its `max` the cache sets aside all of it at once:
 * two megabytes and fifteen milliseconds of the start for a hundred thousand that may never come.
 */
export const lruOptions = (max: number) => ({ maxSize: max, sizeCalculation: () => 1 });
