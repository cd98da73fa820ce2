/**
 * A commander Command that rejects a misspelt option before it looks for required ones, so that `--reasn x` is reported
 * as unknown and not as a missing `--reason`. It calls `unknownOption`, which is private; the public `error` could not
 * suggest the option that was meant. Read in commander 15.1.0.
 */
import { Command, type ParseOptionsResult } from 'commander';

export class StrictCommand extends Command {
  override createCommand(name?: string): Command {
    return new StrictCommand(name);
  }

  override parseOptions(args: string[]): ParseOptionsResult {
    const parsed = super.parseOptions(args);
    const [unknown] = parsed.unknown;
    const wantsHelp = parsed.unknown.some((each) => each === '-h' || each === '--help');
    if (unknown !== undefined && !wantsHelp && this.commands.length === 0) {
      (this as unknown as { unknownOption(flag: string): never }).unknownOption(unknown);
    }
    return parsed;
  }
}
