import { useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import { change } from './http'
import { Link } from './route'
import { Time, count, duration } from './words'

// WhatIf asks the controller to simulate on from what runs and waits now, with other
// rules or more nodes, and says who would wait for how long.
export function WhatIf() {
  const [asked, type] = useState({ set: '', addNodes: '', file: false })
  const [busy, work] = useState(false)
  const [found, tell] = useState<api.WhatIf>()
  const [refused, refuse] = useState<unknown>()
  const ask = async (e: Event) => {
    e.preventDefault()
    work(true)
    refuse(undefined)
    tell(undefined)
    try {
      tell(await change<api.WhatIf>('POST', '/v1/what-if', { set: words(asked.set), addNodes: words(asked.addNodes), file: asked.file }, undefined, 60_000))
    } catch (e) {
      refuse(e)
    }
    work(false)
  }
  return (
    <details class="whatif">
      <summary>What if …?</summary>
      <p class="quiet">The controller simulates on from what runs and waits now, as things are and with your change. Nothing changes by it.</p>
      <form class="bar" onSubmit={ask}>
        <label>
          Other rules{' '}
          <input placeholder="half_life=14d weights.fair_share=20000" size={36} value={asked.set} onInput={(e) => type({ ...asked, set: e.currentTarget.value })} />
        </label>
        <label>
          More nodes <input placeholder="2x8xh100" size={12} value={asked.addNodes} onInput={(e) => type({ ...asked, addNodes: e.currentTarget.value })} />
        </label>
        <label>
          <input type="checkbox" checked={asked.file} onChange={(e) => type({ ...asked, file: e.currentTarget.checked })} /> The rules as the file has them now
        </label>
        <button type="submit" disabled={busy}>
          Simulate
        </button>
      </form>
      <p class="quiet" role="status">
        {busy && 'simulating …'}
      </p>
      <Trouble of={refused} />
      {found && <Found of={found} />}
    </details>
  )
}

const words = (text: string): string[] => text.split(/[\s,]+/).filter((w) => w)

function Found(props: { of: api.WhatIf }) {
  const w = props.of
  const jobs = w.jobs ?? []
  if (w.all.jobs === 0) return <p class="empty">No job waits.</p>
  return (
    <>
      <p>
        {count(w.all.sooner, 'job')} of {w.all.jobs.toLocaleString('en')} would start sooner, and {count(w.all.later, 'job')} later.{' '}
        {w.whole ? (
          'Jobs are thought to run as long as their user’s last ones of the kind, or until their limits.'
        ) : (
          <>
            Looked until <Time at={w.until} />, in the time that there is: what starts later counts as if it started then.
          </>
        )}
      </p>
      <div class="sideways" tabIndex={0} role="region" aria-label="Who would wait for how long">
        <table class="plain">
          <thead>
            <tr>
              <th>User</th>
              <th class="number">Waiting</th>
              <th class="number">Start, now</th>
              <th class="number">then</th>
              <th class="number">Wait on average, now</th>
              <th class="number">then</th>
              <th class="number">Sooner</th>
              <th class="number">Later</th>
            </tr>
          </thead>
          <tbody>
            {[{ ...w.all, user: 'all' }, ...(w.users ?? [])].map((u, i) => (
              <tr key={i}>
                <td>{u.user}</td>
                <td class="number">{u.jobs}</td>
                <td class="number">{u.startedBefore}</td>
                <td class="number">{u.startedAfter}</td>
                <td class="number">{duration(u.waitBeforeS)}</td>
                <td class="number">{duration(u.waitAfterS)}</td>
                <td class="number">{u.sooner || ''}</td>
                <td class="number">{u.later || ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {jobs.length > 0 && (
        <div class="sideways" tabIndex={0} role="region" aria-label="Jobs for which it makes most of a difference">
          <table class="plain">
            <thead>
              <tr>
                <th>Job</th>
                <th>User</th>
                <th>Name</th>
                <th>Starts, now</th>
                <th>then</th>
              </tr>
            </thead>
            <tbody>
              {jobs.map((j) => (
                <tr key={j.id}>
                  <td>
                    <Link to={'/jobs/' + j.id}>{j.id}</Link>
                  </td>
                  <td>{j.user}</td>
                  <td>{j.name}</td>
                  <td>{j.before ? <Time at={j.before} /> : 'later'}</td>
                  <td>{j.after ? <Time at={j.after} /> : 'later'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
