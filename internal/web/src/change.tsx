import { useState } from 'preact/hooks'
import type * as api from './api'
import { Dialog, Trouble } from './dialog'
import { change } from './http'
import { operator } from './session'
import { waits } from './states'

// Change is a button to give a job that is not over another name, time limit, class or
// project. What of it the controller allows, it says.
export function Change(props: { job: api.JobDetail; done: () => void }) {
  const [asked, ask] = useState(false)
  return (
    <>
      <button type="button" onClick={() => ask(true)}>
        {waits(props.job) ? 'Change' : 'Extend'}
      </button>
      {asked && <Question {...props} leave={() => ask(false)} />}
    </>
  )
}

function Question(props: { job: api.JobDetail; done: () => void; leave: () => void }) {
  const j = props.job
  const before = { name: j.name, hours: hoursOf(j.limitS), least: hoursOf(j.limitMinS), qos: j.qos ?? '', project: j.project, priority: '' }
  const [typed, type] = useState(before)
  const [busy, work] = useState(false)
  const [failed, fail] = useState<unknown>()
  const act = async () => {
    work(true)
    fail(undefined)
    try {
      const wanted = changed(before, typed)
      if (!wanted) return props.leave()
      await update(j.id, wanted)
      props.leave()
      props.done()
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  const field = (label: string, key: keyof typeof before, hint?: string) => (
    <label>
      <span>{label}</span>
      <input value={typed[key]} onInput={(e) => type({ ...typed, [key]: e.currentTarget.value })} />
      {hint && <small>{hint}</small>}
    </label>
  )
  return (
    <Dialog title={`Change job ${j.id}`} yes="Change" busy={busy} onYes={act} onNo={props.leave}>
      <div class="fields">
        {field('Time limit, hours', 'hours', waits(j) ? 'A shorter one may let it start sooner.' : 'Longer is granted where nobody was promised what it holds.')}
        {waits(j) && field('Least time limit, hours', 'least', 'A limit down to this will do where it starts sooner by it. Empty: none.')}
        {field('Name', 'name')}
        {waits(j) && field('Class of service', 'qos')}
        {waits(j) && field('Project', 'project')}
        {waits(j) && operator() && field('Added to its priority', 'priority')}
      </div>
      <Trouble of={failed} />
    </Dialog>
  )
}

type Typed = Record<'name' | 'hours' | 'least' | 'qos' | 'project' | 'priority', string>

const hoursOf = (seconds?: number): string => (seconds ? String(Number((seconds / 3600).toFixed(3))) : '')

function secondsOf(hours: string): number {
  const n = Math.round(Number(hours.replace(',', '.')) * 3600)
  if (Number.isNaN(n)) throw new Error(`"${hours}" is no number of hours`)
  return n
}

// changed is what of it was changed; nothing: none.
function changed(before: Typed, typed: Typed): api.JobChange | undefined {
  const out: api.JobChange = {}
  if (typed.hours !== before.hours) out.limitS = secondsOf(typed.hours)
  if (typed.least !== before.least) out.limitMinS = secondsOf(typed.least)
  if (typed.name !== before.name) out.name = typed.name
  if (typed.qos !== before.qos) out.qos = typed.qos
  if (typed.project !== before.project) out.project = typed.project
  if (typed.priority !== before.priority) out.priority = Number(typed.priority)
  return Object.keys(out).length > 0 ? out : undefined
}

// update changes a job, or throws why it was not.
export async function update(id: string, wanted: api.JobChange): Promise<void> {
  const answer = await change<api.ActionResponse>('POST', '/v1/jobs/actions/update', { ids: [id], change: wanted })
  const refused = answer.results?.find((r) => r.error)?.error
  if (refused) throw refused
}
