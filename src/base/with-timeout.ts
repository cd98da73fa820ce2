/** Waits for a promise so long and no longer; it goes on unheard after that. Network time, so the real clock. */
export async function withTimeout<T>(ms: number, promise: Promise<T>, otherwise: () => T): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise()), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
