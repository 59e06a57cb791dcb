import { useEffect } from 'preact/hooks'
import type * as api from './api'
import { useRead } from './ask'
import { Trouble } from './dialog'

// Controllers are those that have all records in common, and how each fares.
export function Controllers() {
  const { answer, failed, load } = useRead<api.ControllerList>('/v1/controllers')
  useEffect(() => {
    const timer = setInterval(() => document.hidden || load(), 10_000)
    return () => clearInterval(timer)
  }, [load])
  const list = answer?.controllers ?? []
  if (list.length === 1 && list[0]!.alone) return <p class="empty">This controller is the only one: there is none beside it to take its place.</p>
  return (
    <>
      <Trouble of={failed} />
      <div class="sideways" tabIndex={0} role="region" aria-label="Controllers">
        <table class="plain">
          <thead>
            <tr>
              <th>Controller</th>
              <th>Address</th>
              <th>State</th>
              <th>Version</th>
              <th>Settings that differ</th>
            </tr>
          </thead>
          <tbody>
            {list.map((c) => (
              <tr key={c.name}>
                <td>{c.name}</td>
                <td>{c.address}</td>
                <td class={'state ' + (c.answers && !c.stuck ? 'good' : 'bad')}>{stateOf(c)}</td>
                <td>{c.version}</td>
                <td>{c.unreadable ?? (c.differs ?? []).join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function stateOf(c: api.Controller): string {
  if (c.leads) return 'leads'
  if (!c.answers) return 'does not answer'
  const behind = c.behind ? `, ${c.behind} behind` : ''
  return (c.stuck ? 'takes no records' : c.counts ? 'follows' : 'joining') + behind
}
