import { useEffect, useState } from 'preact/hooks'
import type * as api from './api'
import { useRead } from './ask'
import { Trouble } from './dialog'
import { Hints } from './mine'
import { type Numbers, broken } from './points'
import type Plot from './plot'
import { Ranks, useRank } from './ranks'
import { over } from './states'
import { bytes } from './words'

const percent = (n: number) => `${Math.round(n)} %`
const cores = (n: number) => `${Number(n.toPrecision(3))} ${n === 1 ? 'core' : 'cores'}`
const rate = (n: number) => bytes(n) + '/s'
const watts = (n: number) => `${Math.round(n)} W`

// Shown is a plot: its curves, by the fields of the answer that they are in.
interface Shown {
  title: string
  write: (n: number) => string
  granted?: (g: api.Granted) => number | undefined
  curves: [name: string, colour: string, of: (c: api.Curves) => Numbers | null | undefined][]
}

const plots: Shown[] = [
  { title: 'GPU', write: percent, granted: () => 100, curves: [['busy', 'runs', (c) => c.gpu]] },
  { title: 'GPU memory', write: bytes, granted: (g) => g.gpuMemBytes, curves: [['used', 'ends', (c) => c.gpuMemBytes]] },
  { title: 'CPU', write: cores, granted: (g) => g.cpus, curves: [['busy', 'good', (c) => c.cpus]] },
  { title: 'Memory', write: bytes, granted: (g) => g.memBytes, curves: [['used', 'link', (c) => c.memBytes]] },
  { title: 'Network', write: rate, curves: [['received', 'runs', (c) => c.receivedBps], ['sent', 'waits', (c) => c.sentBps]] },
  { title: 'Power of the GPUs', write: watts, curves: [['used', 'bad', (c) => c.watts]] },
]

// Use is what a rank of a job uses over its time, against what it was granted.
export function Use(props: { job: api.JobDetail }) {
  const { job } = props
  const { query } = useRank(job)
  const { answer, failed, load } = useRead<api.Curves>(`/v1/jobs/${encodeURIComponent(job.id)}/curves?${query}`)
  const Plot = usePlot()
  const live = !over(job)
  useEffect(() => {
    if (!live) return
    const timer = setInterval(() => document.hidden || load(), 10_000)
    return () => clearInterval(timer)
  }, [live, load])
  return (
    <>
      <div class="bar">
        <Ranks job={job} />
        {answer?.begin && <p class="quiet">A point stands for {answer.stepS} seconds: of memory the most, of all else the mean.</p>}
      </div>
      <Trouble of={failed} />
      {job.used && <Hints of={job.used} />}
      {answer && !answer.begin && <p class="empty">{live ? 'Nothing was measured yet: that begins some seconds after the program.' : 'Nothing was measured, or it is kept no more.'}</p>}
      {answer?.begin && Plot && (
        <div class="plots">
          {plots.map((p) => (
            <Drawn key={p.title} plot={p} of={answer} with={Plot} />
          ))}
        </div>
      )}
    </>
  )
}

function Drawn(props: { plot: Shown; of: api.Curves; with: typeof Plot }) {
  const { plot, of, with: Plot } = props
  const known = plot.curves.map(([name, colour, values]) => ({ name, colour, values: values(of) ?? [] })).filter((c) => c.values.length > 0)
  if (known.length === 0) return null
  const [times, ...values] = broken(Date.parse(of.begin!) / 1000, of.stepS ?? 0, of.at ?? [], known.map((c) => c.values))
  return <Plot title={plot.title} write={plot.write} times={times} granted={plot.granted?.(of.granted)} curves={known.map((c, i) => ({ ...c, values: values[i]! }))} />
}

// usePlot loads what draws, which only this page needs.
function usePlot() {
  const [made, set] = useState<{ Plot: typeof Plot }>()
  useEffect(() => void import('./plot').then((m) => set({ Plot: m.default })), [])
  return made?.Plot
}
