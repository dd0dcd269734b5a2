import type { RunnerFigures } from "@/api/schema";

const GIB = 1024 ** 3;

/** Less free space than this is told as little, in bytes: the same bound as in the terminal. */
const LOW_ON_DISK_BYTES = 2 * GIB;

/** The figures at which a bar is full. */
const FULL = { running: 64, spool: GIB, free: 256 * GIB };

/** How far the bars of a runner's load are filled, from 0 to 1, and whether its disk is nearly full. */
export interface Load {
  running: number;
  spool: number;
  free: number;
  lowOnDisk: boolean;
}

/**
 * The bars of a runner's load.
 *
 * They grow by powers, so that one operation of 64 and 1 MiB of 1 GiB can be seen.
 */
export function loadOf(figures: RunnerFigures): Load {
  return {
    running: share(figures.operations_running, FULL.running),
    spool: share(figures.spool_bytes / 1024, FULL.spool / 1024),
    free: share(figures.disk_free_bytes / GIB, FULL.free / GIB),
    lowOnDisk: figures.disk_free_bytes < LOW_ON_DISK_BYTES,
  };
}

function share(value: number, full: number): number {
  return Math.min(1, Math.log2(1 + Math.max(0, value)) / Math.log2(1 + full));
}
