// Numbers are values of a curve; null: not known.
export type Numbers = (number | null)[]

const gap = 90 // seconds without a point that are no more than a node's silence

// broken puts a hole into curves where nothing was measured for long, so that no line
// is drawn across it. Times are seconds; the first list of the answer are they.
export function broken(begin: number, step: number, at: number[], curves: Numbers[]): [number[], ...Numbers[]] {
  const times: number[] = []
  const out = curves.map((): Numbers => [])
  at.forEach((t, i) => {
    const before = at[i - 1]
    if (before !== undefined && t - before > Math.max(3 * step, gap)) {
      times.push(begin + before + step)
      for (const o of out) o.push(null)
    }
    times.push(begin + t)
    out.forEach((o, k) => o.push(curves[k]![i] ?? null))
  })
  return [times, ...out]
}

// summary is the mean and the most of a curve, as it is written.
export function summary(list: Numbers, write: (n: number) => string): string {
  const known = list.filter((n) => n !== null)
  if (known.length === 0) return 'not known'
  return `mean ${write(known.reduce((a, b) => a + b, 0) / known.length)}, most ${write(Math.max(...known))}`
}
