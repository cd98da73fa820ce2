/** The words of an error for a person: of an error of the system, without its code, its call and a name made up for a moment. */
import { getSystemErrorMessage } from 'node:util';

export function reasonOf(error: unknown): string {
  const { message, errno, syscall } = error as NodeJS.ErrnoException;
  return syscall !== undefined && errno !== undefined && errno < 0 ? getSystemErrorMessage(errno) : message;
}
