import { useMemo, useState } from 'preact/hooks'
import { Actions } from './actions'
import type * as api from './api'
import { useLate } from './ask'
import { Trouble } from './dialog'
import { asked, everyone, filterOf, lineAt, type Open, partOf } from './filter'
import { read } from './http'
import { usePages } from './pages'
import { Link, setQuery, usePlace } from './route'
import { who } from './session'
import { State, over, waits } from './states'
import { useEvents } from './stream'
import { useValue } from './value'
import { Virtual } from './virtual'
import { Time, count, duration, since, useSeconds } from './words'

const lineHeight = 36

const uuid = (j: api.Job) => j.uuid
const lines = (a: api.JobList) => ({ lines: a.jobs ?? [], total: a.total })

// Jobs is the list of jobs, as it is now.
export function Jobs() {
  const me = useValue(who)?.you ?? ''
  const filter = filterOf(usePlace().query, me)
  const jobs = usePages<api.Job, api.JobList>('/v1/jobs?' + useLate(asked(filter)), uuid, lines, 30_000) // places in the queue move without an event
  const tasks = useTasks(filter.all)
  const [chosen, choose] = useState<ReadonlyMap<string, api.Job>>(new Map())
  useSeconds()
  useEvents(new URLSearchParams({ user: filter.user, project: filter.project }).toString(), {
    job: (j) => {
      const place = jobs.pages.placeOf(j.uuid)
      const before = place === undefined ? undefined : jobs.pages.at(place)
      if (before) jobs.put({ ...j, tasks: j.tasks ?? before.tasks })
      if (j.parent && tasks.open.has(j.parent)) tasks.read(j.parent)
      const mine = filter.user !== '' || j.user === me
      const was = before?.state ?? j.was
      const moved = was === undefined || partOf({ state: was }) !== partOf(j) || (filter.state && was !== j.state)
      if (moved || before?.tasks || (!before && filter.text)) jobs.reload(!mine || before !== undefined) // its place is another one, or it was not here
    },
    reset: () => jobs.reload(),
  })
  const here = jobs.pages.here.filter((j) => !j.private)
  const picked = [...chosen.values()].map((j) => jobs.pages.at(jobs.pages.placeOf(j.uuid) ?? -1) ?? j)
  const toggle = (j: api.Job) => choose(flip(chosen, j))
  const open: Open[] = [...tasks.open]
    .map(([array, tasks]) => ({ at: jobs.pages.placeOf(here.find((j) => j.number === array)?.uuid ?? '') ?? -1, tasks }))
    .filter((o) => o.at >= 0)
    .sort((a, b) => a.at - b.at)
  const below = open.reduce((n, o) => n + o.tasks.length, 0)
  return (
    <>
      <div class="bar">
        <h1>Jobs</h1>
        <Filters me={me} />
      </div>
      <div class="bar">
        <Actions jobs={picked} done={() => (choose(new Map()), jobs.reload())} />
        <p class="quiet" aria-live="polite">
          {jobs.loading ? 'reading …' : count(jobs.pages.total, 'line') + (picked.length ? `, ${picked.length} chosen` : '')}
        </p>
      </div>
      <Trouble of={jobs.failed} />
      {!jobs.loading && jobs.pages.total === 0 ? (
        <p class="empty">
          No jobs here. <Link to="/submit">Submit one</Link>
          {!filter.all && (
            <>
              , or{' '}
              <button type="button" class="link" onClick={() => setQuery({ all: 'true' })}>
                show those that have ended
              </button>
            </>
          )}
          .
        </p>
      ) : (
        <Virtual
          count={jobs.pages.total + below}
          height={lineHeight}
          label="Jobs"
          see={(first, last) => jobs.see(lineAt(first, open).at, lineAt(last, open).at)}
          head={<Head all={here.length > 0 && here.every((j) => chosen.has(j.uuid))} number={here.length} choose={(all) => choose(new Map(all ? here.map((j) => [j.uuid, j]) : []))} />}
          line={(i) => {
            const { at, task } = lineAt(i, open)
            const job = task ?? jobs.pages.at(at)
            return job ? (
              <Line
                key={i}
                job={job}
                index={i}
                task={task !== undefined}
                open={!task && tasks.open.has(job.number ?? -1)}
                chosen={chosen.has(job.uuid)}
                choose={() => toggle(job)}
                fold={() => tasks.fold(job.number!)}
              />
            ) : (
              <tr key={i} aria-rowindex={i + 2}>
                <td colSpan={9} class="quiet">
                  …
                </td>
              </tr>
            )
          }}
        />
      )}
    </>
  )
}

function Head(props: { all: boolean; number: number; choose: (all: boolean) => void }) {
  return (
    <tr>
      <th class="pick">
        <input type="checkbox" aria-label={`Choose the ${props.number} that were read`} title={`Choose the ${props.number} that were read`} checked={props.all} onChange={() => props.choose(!props.all)} />
      </th>
      <th>Job</th>
      <th>Name</th>
      <th>State</th>
      <th class="wide">User</th>
      <th class="wide">Project</th>
      <th class="number wide">GPUs</th>
      <th>Time</th>
      <th class="wide grow">Where, or why not</th>
    </tr>
  )
}

function flip(map: ReadonlyMap<string, api.Job>, j: api.Job): ReadonlyMap<string, api.Job> {
  const next = new Map(map)
  next.delete(j.uuid) || next.set(j.uuid, j)
  return next
}

// useTasks has the tasks of the arrays that are unfolded, by the array's number.
function useTasks(all: boolean) {
  const [open, set] = useState<ReadonlyMap<number, api.Job[]>>(new Map())
  const ask = async (array: number) => {
    const list = await read<api.JobList>(`/v1/jobs?array=${array}&limit=1000${all ? '&all=true' : ''}`)
    set((was) => new Map(was).set(array, list.jobs ?? []))
  }
  const late = useMemo(() => new Map<number, number>(), []) // timers of arrays that are read again
  const again = (array: number) => {
    if (!late.has(array)) late.set(array, window.setTimeout(() => (late.delete(array), void ask(array).catch(() => undefined)), 200))
  }
  const fold = (array: number) => {
    if (!open.has(array)) return void ask(array).catch(() => undefined)
    set((was) => new Map([...was].filter(([n]) => n !== array)))
  }
  return { open, fold, read: again }
}

function Filters(props: { me: string }) {
  const f = filterOf(usePlace().query, props.me)
  return (
    <form class="filters" role="search" onSubmit={(e: Event) => e.preventDefault()}>
      <label>
        <span>Whose</span>
        <select value={f.user || everyone} onChange={(e) => setQuery({ user: e.currentTarget.value === props.me ? '' : e.currentTarget.value })}>
          <option value={props.me}>mine</option>
          <option value={everyone}>everyone's</option>
          {f.user && f.user !== props.me && <option value={f.user}>{f.user}</option>}
        </select>
      </label>
      <label>
        <span>State</span>
        <select value={f.state} onChange={(e) => setQuery({ state: e.currentTarget.value })}>
          <option value="">any</option>
          {['QUEUED', 'ONHOLD', 'RUNNING', 'COMPLETING', 'FINISHED', 'FAILED', 'CANCELLED', 'HALTED'].map((s) => (
            <option key={s}>{s}</option>
          ))}
        </select>
      </label>
      <label class="check">
        <input type="checkbox" checked={f.all} onChange={(e) => setQuery({ all: e.currentTarget.checked ? 'true' : '' })} />
        <span>ended ones too</span>
      </label>
      <label>
        <span>Search</span>
        <input type="search" value={f.text} placeholder="name, number, node, reason" onInput={(e) => setQuery({ text: e.currentTarget.value })} />
      </label>
    </form>
  )
}

function Line(props: { job: api.Job; index: number; task: boolean; open: boolean; chosen: boolean; choose: () => void; fold: () => void }) {
  const { job } = props
  const below = job.tasks?.numBelow
  return (
    <tr aria-rowindex={props.index + 2} class={props.chosen ? 'chosen' : ''}>
      <td class="pick">{!job.private && <input type="checkbox" aria-label={'Choose job ' + job.id} checked={props.chosen} onChange={props.choose} />}</td>
      <td class={props.task ? 'task' : ''}>
        {job.private ? job.id : <Link to={'/jobs/' + job.id}>{job.id}</Link>}
        {below !== undefined && (
          <button type="button" class="fold" aria-expanded={props.open} aria-label={`${count(below, 'task')} of job ${job.id}`} onClick={props.fold}>
            {props.open ? '▾' : '▸'} {below}
          </button>
        )}
      </td>
      <td class="name" title={job.name}>
        {job.name}
      </td>
      <td>
        <State job={job} />
      </td>
      <td class="wide">
        <button type="button" class="link" onClick={() => setQuery({ user: job.user }, false)}>
          {job.user}
        </button>
      </td>
      <td class="wide">{job.project}</td>
      <td class="number wide">{job.gpus || ''}</td>
      <td>{timeOf(job)}</td>
      <td class="wide grow">{whereOf(job)}</td>
    </tr>
  )
}

// timeOf is what people ask of the time: how long it has run, when it starts, or
// when it ended.
function timeOf(j: api.Job) {
  if (over(j)) return <Time at={j.ended} />
  if (j.started) return duration(since(j.started)) + (j.limitS ? ' of ' + duration(j.limitS) : '')
  if (waits(j) && j.estStart) {
    return (
      <>
        ~ <Time at={j.estStart} />
      </>
    )
  }
  return ''
}

function whereOf(j: api.Job): string {
  const tasks = j.tasks ? `${j.tasks.numSucceeded} of ${j.tasks.indexes} done; ` : ''
  if (waits(j) || over(j)) return tasks + (j.reasonText || j.reason || (j.nodes ?? []).join(', '))
  return tasks + (j.nodes ?? []).join(', ')
}
