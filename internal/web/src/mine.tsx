import type * as api from './api'
import { useRead } from './ask'
import { Trouble } from './dialog'
import { Link } from './route'
import { who } from './session'
import { Time, sentence } from './words'
import { useValue } from './value'

// Mine is what the user's last jobs made of what they asked for, and what would do.
export function Mine() {
  const me = useValue(who)?.you ?? ''
  const { answer, failed } = useRead<api.History>(`/v1/history?newest=true&advice=true&limit=20&user=${encodeURIComponent(me)}`)
  const ran = (answer?.jobs ?? []).filter((j) => (j.used?.elapsedS ?? 0) > 0)
  return (
    <section aria-label="What my jobs made of what they asked for">
      <h2>My last jobs, and what would have done</h2>
      <Trouble of={failed} />
      {answer && ran.length === 0 && <p class="quiet">None of your jobs has run to its end lately.</p>}
      {ran.length > 0 && (
        <div class="sideways" tabIndex={0} role="region" aria-label="My last jobs">
          <table class="plain">
            <thead>
              <tr>
                <th>Job</th>
                <th>Name</th>
                <th>Ended</th>
                <th class="number">CPU</th>
                <th class="number">Memory</th>
                <th class="number">GPU</th>
                <th class="number">Time limit</th>
                <th>What would do</th>
              </tr>
            </thead>
            <tbody>
              {ran.map((j) => (
                <tr key={j.uuid}>
                  <td>
                    <Link to={'/jobs/' + j.id}>{j.id}</Link>
                  </td>
                  <td>{j.name}</td>
                  <td>
                    <Time at={j.ended} />
                  </td>
                  <td class="number">{part(j.used!.cpuTimeS, (j.used!.cores ?? 0) * j.used!.elapsedS)}</td>
                  <td class="number">{part(j.used!.peakMemBytes, j.used!.memBytes)}</td>
                  <td class="number">{j.used!.gpu && part(j.used!.gpu.utilization, 100)}</td>
                  <td class="number">{part(j.used!.elapsedS, j.limitS)}</td>
                  <td>
                    <Hints of={j.used!} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

// Hints are the controller's, as `gacct eff` prints them.
export function Hints(props: { of: api.Used }) {
  return (
    <>
      {(props.of.advice ?? []).map((a) => (
        <p key={a} class="hint">
          {sentence(a)}.
        </p>
      ))}
    </>
  )
}

const part = (used: number, of: number | undefined): string => (of ? Math.round((100 * used) / of) + ' %' : '')
