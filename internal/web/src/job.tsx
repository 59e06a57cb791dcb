import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Actions } from './actions'
import type * as api from './api'
import { Change } from './change'
import { Trouble } from './dialog'
import { Facts } from './facts'
import { read } from './http'
import { Log } from './log'
import { Reach } from './reach'
import { Link, setQuery, usePlace } from './route'
import { InJob } from './shell'
import { State, over, waits } from './states'
import { useEvents } from './stream'
import { Use } from './use'
import { Time, duration, since, useSeconds } from './words'
import { Waterfall } from './waterfall'
import { Why } from './why'

const tabs = ['output', 'use', 'timeline', 'document', 'shell']

// Job is everything about one job, live.
export function Job(props: { id: string }) {
  const { job, failed, load } = useJob(props.id)
  const place = usePlace()
  const tab = tabs.includes(place.query.get('tab') ?? '') ? place.query.get('tab')! : 'output'
  useSeconds(job !== undefined && !over(job))
  if (!job) return failed ? <Trouble of={failed} /> : <p class="quiet">reading …</p>
  return (
    <>
      <div class="bar">
        <h1>
          {job.id} <span class="quiet">{job.name}</span>
        </h1>
        <State job={job} />
        <p class="quiet">{ageOf(job)}</p>
        <Actions jobs={[job]} done={load} />
        {!over(job) && !job.private && !job.tasks && <Change job={job} done={load} />}
        <Link to={'/submit?again=' + job.id} class="button">
          Submit another like it
        </Link>
      </div>
      <Trouble of={failed} />
      {job.reasonText && !waits(job) && <p class={job.state === 'FAILED' ? 'reason bad' : 'reason'}>{job.reasonText}</p>}
      {waits(job) && <Why id={job.id} version={job.version} done={load} />}
      <Waterfall job={job} />
      <Facts job={job} />
      {job.state === 'RUNNING' && <Reach key={job.uuid} job={job} />}
      <div class="tabs" role="tablist">
        {tabs.map((t) => (
          <button key={t} type="button" role="tab" aria-selected={t === tab} onClick={() => setQuery({ tab: t })}>
            {t}
          </button>
        ))}
      </div>
      <section role="tabpanel" aria-label={tab}>
        {tab === 'output' && <Log key={job.uuid} job={job} />}
        {tab === 'use' && <Use key={job.uuid} job={job} />}
        {tab === 'timeline' && <Timeline job={job} />}
        {tab === 'shell' && <InJob key={job.uuid} job={job} />}
        {tab === 'document' && <pre class="document">{JSON.stringify(job.spec, null, 2)}</pre>}
      </section>
    </>
  )
}

// useJob reads a job and reads it again when it has changed.
function useJob(id: string) {
  const [job, setJob] = useState<api.JobDetail>()
  const [failed, fail] = useState<unknown>()
  const turn = useRef(0)
  const load = useCallback(async () => {
    const mine = ++turn.current
    try {
      const j = await read<api.JobDetail>('/v1/jobs/' + encodeURIComponent(id))
      if (mine === turn.current) {
        setJob(j)
        fail(undefined)
      }
    } catch (e) {
      if (mine === turn.current) fail(e)
    }
  }, [id])
  useEffect(() => {
    setJob(undefined)
    void load()
    const timer = setInterval(() => document.hidden || void load(), 10_000) // what it uses changes without an event
    return () => clearInterval(timer)
  }, [load])
  useEvents('job=' + encodeURIComponent(id), { job: load, reset: load })
  return { job, failed, load }
}

function ageOf(j: api.JobDetail) {
  if (over(j)) {
    const ran = j.started && j.ended ? (Date.parse(j.ended) - Date.parse(j.started)) / 1000 : 0
    return (
      <>
        ended <Time at={j.ended} />
        {j.started && <>, ran {duration(ran)}</>}
        {j.exitCode !== undefined && <>, exit code {j.exitCode}</>}
      </>
    )
  }
  if (j.started) return <>has run {duration(since(j.started)) + (j.limitS ? ' of ' + duration(j.limitS) : '')}</>
  return <>has waited {duration(since(j.submitted))}</>
}

function Timeline(props: { job: api.JobDetail }) {
  const lines = [...(props.job.events ?? [])].reverse()
  return (
    <table class="plain">
      <thead>
        <tr>
          <th>Time</th>
          <th>State</th>
          <th>What happened</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((e, i) => (
          <tr key={lines.length - i}>
            <td>
              <Time at={e.time} />
            </td>
            <td>{e.state}</td>
            <td>{e.message}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
