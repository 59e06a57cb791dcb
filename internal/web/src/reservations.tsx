import { useState } from 'preact/hooks'
import { again, recurrence, rhythms } from './again'
import type * as api from './api'
import { useRead } from './ask'
import { Dialog, Trouble } from './dialog'
import { change } from './http'
import { Time, count } from './words'

// Reservations are the windows that keep nodes for some, or for nobody.
export function Reservations() {
  const { answer, failed, load } = useRead<api.ReservationList>('/v1/reservations')
  const [making, make] = useState(false)
  const [ending, end] = useState<api.Reservation>()
  const list = answer?.reservations ?? []
  return (
    <>
      <div class="bar">
        <button type="button" class="main" onClick={() => make(true)}>
          Reserve nodes
        </button>
      </div>
      <Trouble of={failed} />
      {answer && list.length === 0 && <p class="empty">Nothing is reserved.</p>}
      {list.length > 0 && (
        <div class="sideways" tabIndex={0} role="region" aria-label="Reservations">
          <table class="plain">
            <thead>
              <tr>
                <th>Name</th>
                <th>From</th>
                <th>Until</th>
                <th>Again</th>
                <th>Nodes</th>
                <th>For</th>
                <th>Why</th>
                <th>What to do</th>
              </tr>
            </thead>
            <tbody>
              {list.map((r) => (
                <tr key={r.name}>
                  <td title={r.uuid}>{r.name}</td>
                  <td>
                    <Time at={r.start} />
                  </td>
                  <td>
                    <Time at={r.end} />
                  </td>
                  <td>{r.every && <Again every={r.every} />}</td>
                  <td>
                    {(r.nodes ?? []).join(', ')}
                    {(r.gpus ?? []).length > 0 && ` (${count(r.gpus!.length, 'GPU')})`}
                  </td>
                  <td>{forWhom(r)}</td>
                  <td>{r.reason}</td>
                  <td>
                    <button type="button" onClick={() => end(r)}>
                      End
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {making && <Make leave={() => make(false)} done={load} />}
      {ending && <End reservation={ending} leave={() => end(undefined)} done={load} />}
    </>
  )
}

function Again(props: { every: api.Recurrence }) {
  const { until, upcoming } = props.every
  return (
    <>
      {again(props.every)}
      {(upcoming ?? []).map((s, i) => (
        <span key={s.start} class="quiet">
          {i ? ', ' : '; then '}
          <Time at={s.start} />
        </span>
      ))}
      {until && (
        <>
          ; until <Time at={until} />
        </>
      )}
    </>
  )
}

function forWhom(r: api.Reservation): string {
  if (r.maintenance) return 'nobody (maintenance)'
  const named = [...(r.projects ?? []).map((p) => 'project ' + p), ...(r.users ?? []).map((u) => 'user ' + u)]
  return named.join(', ') || 'jobs that name it'
}

// useAct does something once, and tells what went wrong.
function useAct(leave: () => void, done: () => void) {
  const [busy, work] = useState(false)
  const [failed, fail] = useState<unknown>()
  const act = async (what: () => Promise<unknown>) => {
    work(true)
    fail(undefined)
    try {
      await what()
      leave()
      done()
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  return { busy, failed, act }
}

function End(props: { reservation: api.Reservation; leave: () => void; done: () => void }) {
  const { busy, failed, act } = useAct(props.leave, props.done)
  const [once, skip] = useState(false)
  const { name, every } = props.reservation
  const path = `/v1/reservations/${encodeURIComponent(name)}${once ? '?once=true' : ''}`
  return (
    <Dialog title={`End reservation ${name}?`} yes={once ? 'Skip it once' : 'End it'} danger busy={busy} onYes={() => act(() => change('DELETE', path))} onNo={props.leave}>
      {every && (
        <label class="check">
          <input type="checkbox" checked={once} onChange={(e) => skip(e.currentTarget.checked)} />
          <span>only the time that is, or comes next; it comes again after that</span>
        </label>
      )}
      <p>Its nodes are for everybody's jobs again. Jobs that run there go on.</p>
      <Trouble of={failed} />
    </Dialog>
  )
}

// names are what a field lists, between commas or spaces.
const names = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

function Make(props: { leave: () => void; done: () => void }) {
  const [f, set] = useState({ name: '', start: local(0), end: local(4), nodes: '', count: '', projects: '', users: '', maintenance: false, reason: '', rhythm: '', last: '' })
  const { busy, failed, act } = useAct(props.leave, props.done)
  const field = (key: 'name' | 'start' | 'end' | 'nodes' | 'count' | 'projects' | 'users' | 'reason', label: string, help: string, time = false) => (
    <label>
      <span>{label}</span>
      {time ? (
        <input type="datetime-local" value={f[key]} onInput={(e) => set({ ...f, [key]: e.currentTarget.value })} />
      ) : (
        <input value={f[key]} onInput={(e) => set({ ...f, [key]: e.currentTarget.value })} />
      )}
      <small>{help}</small>
    </label>
  )
  const send = (): Promise<unknown> => {
    const r: api.Reservation = { name: f.name.trim(), start: new Date(f.start).toISOString(), end: new Date(f.end).toISOString(), maintenance: f.maintenance, reason: f.reason }
    if (names(f.nodes).length) r.nodes = names(f.nodes)
    if (f.count) r.count = Number(f.count)
    if (names(f.projects).length) r.projects = names(f.projects)
    if (names(f.users).length) r.users = names(f.users)
    if (f.rhythm) r.every = recurrence(f.rhythm, new Date(f.start), f.last, Intl.DateTimeFormat().resolvedOptions().timeZone)
    return change('POST', '/v1/reservations', r)
  }
  return (
    <Dialog title="Reserve nodes" yes="Reserve" busy={busy || !f.name.trim() || !f.start || !f.end} onYes={() => act(send)} onNo={props.leave}>
      <div class="fields">
        {field('name', 'Name', 'jobs and commands name it so')}
        {field('start', 'From', 'in your time zone', true)}
        {field('end', 'Until', 'in your time zone', true)}
        <label>
          <span>Again</span>
          <select value={f.rhythm} onChange={(e) => set({ ...f, rhythm: e.currentTarget.value })}>
            <option value="">never</option>
            {Object.keys(rhythms).map((r) => (
              <option key={r}>{r}</option>
            ))}
          </select>
          <small>by the clock of your time zone, for as long each time</small>
        </label>
        {f.rhythm && (
          <label>
            <span>Last day</span>
            <input type="date" value={f.last} onInput={(e) => set({ ...f, last: e.currentTarget.value })} />
            <small>on which it begins; empty: it has none</small>
          </label>
        )}
        {field('nodes', 'Nodes', 'their names; or leave it empty and say how many')}
        {field('count', 'How many nodes', 'chosen by the controller')}
        {field('projects', 'For projects', 'their jobs may use it')}
        {field('users', 'For users', 'their jobs may use it')}
        <label class="check">
          <span>For nobody: maintenance</span>
          <input type="checkbox" checked={f.maintenance} onChange={(e) => set({ ...f, maintenance: e.currentTarget.checked })} />
        </label>
        {field('reason', 'Why', 'shown to those who wait')}
      </div>
      <Trouble of={failed} />
    </Dialog>
  )
}

// local is in so many hours from now, as a field for times has it.
function local(hours: number): string {
  const at = new Date(Date.now() + hours * 3600_000)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
