import type * as api from './api'
import { setQuery, usePlace } from './route'

// useRank is which rank and which try of a job the address bar names.
export function useRank(job: api.JobDetail) {
  const q = usePlace().query
  const tries = (job.attempts ?? []).length
  const tried = Number(q.get('try') ?? 0) // 0: the last one
  const rank = Number(q.get('rank') ?? 0)
  return { rank, tried, tries, query: `rank=${rank}` + (tried ? `&attempt=${tried}` : '') }
}

// Ranks lets people choose a rank and a try, where there are several; now: of the
// try that runs.
export function Ranks(props: { job: api.JobDetail; now?: boolean }) {
  const { rank, tried, tries } = useRank(props.job)
  const ranks = props.job.numNodes ?? 1
  return (
    <>
      {ranks > 1 && <Choice name="Rank" value={rank} of={ranks} first={0} choose={(n) => setQuery({ rank: n ? String(n) : '' })} />}
      {tries > 1 && !props.now && <Choice name="Try" value={tried || tries} of={tries} first={1} choose={(n) => setQuery({ try: n === tries ? '' : String(n) })} />}
    </>
  )
}

function Choice(props: { name: string; value: number; of: number; first: number; choose: (n: number) => void }) {
  return (
    <label>
      <span>{props.name}</span>
      <select value={props.value} onChange={(e) => props.choose(Number(e.currentTarget.value))}>
        {Array.from({ length: props.of }, (_, i) => (
          <option key={i} value={i + props.first}>
            {i + props.first}
          </option>
        ))}
      </select>
    </label>
  )
}
