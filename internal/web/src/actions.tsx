import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type * as api from './api'
import { Dialog, Trouble } from './dialog'
import { change } from './http'
import { operator } from './session'
import { over, waits } from './states'
import { count } from './words'

// Action is something to do with jobs, as the API has it.
interface Action {
  name: string // as in /v1/jobs/actions/{name}
  label: string
  does: string // what will happen, before the number of jobs
  fits: (j: api.Job) => boolean
  danger?: boolean
}

const actions: Action[] = [
  { name: 'cancel', label: 'Cancel', does: 'This ends', fits: (j) => !over(j) && !j.ending, danger: true },
  { name: 'hold', label: 'Hold', does: 'This keeps from starting', fits: (j) => j.state === 'QUEUED' },
  { name: 'release', label: 'Release', does: 'This lets start again', fits: (j) => j.state === 'ONHOLD' && (operator() || j.reason !== 'JobHeldAdmin') },
  { name: 'requeue', label: 'Run again', does: 'This puts back into the queue', fits: (j) => !waits(j) && !j.ending },
]

// Actions are the buttons for the jobs that are chosen; each asks first, and says
// afterwards what was done to each job. A button that fits no more leaves the focus in
// their group, where Tab goes on.
export function Actions(props: { jobs: api.Job[]; done?: () => void }) {
  const [asked, ask] = useState<Action>()
  const [said, say] = useState('')
  const group = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const e = document.activeElement
    if (e instanceof HTMLButtonElement && e.disabled && group.current!.contains(e)) group.current!.focus()
  })
  return (
    <div class="actions" ref={group} tabIndex={-1} role="group" aria-label="What to do with the chosen jobs">
      {actions.map((a) => {
        const n = props.jobs.filter(a.fits).length
        return (
          <button key={a.name} type="button" class={a.danger ? 'danger' : ''} disabled={n === 0} onClick={() => (say(''), ask(a))}>
            {a.label}
            {props.jobs.length > 1 && n > 0 ? ` ${n}` : ''}
          </button>
        )
      })}
      {asked && <Question action={asked} jobs={props.jobs.filter(asked.fits)} leave={() => ask(undefined)} done={(text) => (say(text), props.done?.())} />}
      <p class="quiet" role="status">
        {said}
      </p>
    </div>
  )
}

function Question(props: { action: Action; jobs: api.Job[]; leave: () => void; done: (said: string) => void }) {
  const [jobs] = useState(props.jobs) // those that were chosen when it was asked
  const [busy, work] = useState(false)
  const [said, say] = useState<api.ActionResult[]>()
  const [failed, fail] = useState<unknown>()
  const act = async () => {
    work(true)
    fail(undefined)
    try {
      const answer = await change<api.ActionResponse>('POST', '/v1/jobs/actions/' + props.action.name, { ids: jobs.map((j) => j.id) })
      const results = answer.results ?? []
      const refused = results.filter((r) => r.error)
      props.done(summary(results))
      if (refused.length > 0) say(refused)
      else props.leave()
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  const shown = jobs.slice(0, 8)
  if (said) {
    return (
      <Dialog title="Not done" yes="Good" onYes={props.leave} onNo={props.leave}>
        <ul class="names">
          {said.slice(0, 50).map((r) => (
            <li key={r.id}>
              {r.id}: {[r.error?.message, r.error?.hint].filter(Boolean).join('; ')}
            </li>
          ))}
        </ul>
      </Dialog>
    )
  }
  return (
    <Dialog title={props.action.label + '?'} yes={props.action.label} danger={props.action.danger} busy={busy} onYes={act} onNo={props.leave}>
      <p>
        {props.action.does} {count(jobs.length, 'job')}:
      </p>
      <ul class="names">
        {shown.map((j) => (
          <li key={j.uuid}>
            {j.id} {j.name}
          </li>
        ))}
        {jobs.length > shown.length && <li>and {jobs.length - shown.length} more</li>}
      </ul>
      <Trouble of={failed} />
    </Dialog>
  )
}

// summary says in a line what was done.
function summary(results: api.ActionResult[]): string {
  const done = results.filter((r) => !r.error)
  if (done.length === 1) return `${done[0]!.id}: ${done[0]!.message || done[0]!.after || 'done'}`
  return done.length > 0 ? `done for ${count(done.length, 'job')}` : ''
}
