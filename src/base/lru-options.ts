/**
 * Limits an LRUCache to `max` entries without allocating them in advance. Its own `max` option does: for a hundred thousand
 * entries that takes two megabytes, and fifteen milliseconds at start.
 */
export const lruOptions = (max: number) => ({ maxSize: max, sizeCalculation: () => 1 });
