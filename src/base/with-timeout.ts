/**
 * Waits for a promise for at most `ms` of real time, then returns `otherwise()`. The promise itself continues; its later
 * result is ignored.
 */
export async function withTimeout<T>(ms: number, promise: Promise<T>, otherwise: () => T): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise()), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
