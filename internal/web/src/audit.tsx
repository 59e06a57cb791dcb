import type * as api from './api'
import { useLate, useRead } from './ask'
import { Trouble } from './dialog'
import { setQuery, usePlace } from './route'
import { Time } from './words'

// Audit is who changed what, the newest first.
export function Audit() {
  const q = usePlace().query
  const user = q.get('user') ?? ''
  const object = q.get('object') ?? ''
  const asked = new URLSearchParams({ limit: '200' })
  if (user) asked.set('user', user)
  if (object) asked.set('object', object)
  const { answer, failed } = useRead<api.AuditList>('/v1/audit?' + useLate(asked.toString()))
  const entries = answer?.entries ?? []
  return (
    <>
      <form class="filters" role="search" onSubmit={(e: Event) => e.preventDefault()}>
        <label>
          <span>User</span>
          <input type="search" value={user} onInput={(e) => setQuery({ user: e.currentTarget.value })} />
        </label>
        <label>
          <span>What was changed</span>
          <input type="search" value={object} placeholder="a node, a job" onInput={(e) => setQuery({ object: e.currentTarget.value })} />
        </label>
      </form>
      <Trouble of={failed} />
      {answer && entries.length === 0 && <p class="empty">Nothing here.</p>}
      <div class="sideways" tabIndex={0} role="region" aria-label="Audit log">
        <table class="plain">
          <thead>
            <tr>
              <th>Time</th>
              <th>Who</th>
              <th>Did</th>
              <th>To</th>
              <th>Change</th>
              <th>Result</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((e) => (
              <tr key={e.seq + e.action}>
                <td>
                  <Time at={e.time} />
                </td>
                <td title={`${e.role}, by ${e.via}, from ${e.from}`}>{e.user}</td>
                <td>{e.action}</td>
                <td>{e.object}</td>
                <td>{e.change}</td>
                <td class={e.result === 'ok' ? '' : 'state bad'}>
                  {e.result}
                  {e.count ? `, ${e.count} times` : ''}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
