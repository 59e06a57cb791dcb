import { useState } from 'preact/hooks'
import type * as api from './api'
import { Ranks, useRank } from './ranks'

// Reach says how a browser comes to a port of a running job: by the command that
// brings it to the user's own machine. Below this page's address it cannot be shown:
// what a job serves would be a part of this page to the browser, and could act as
// its user.
export function Reach(props: { job: api.JobDetail }) {
  const { rank } = useRank(props.job)
  const ports = portsOf(props.job, rank)
  const [typed, type] = useState<string>()
  const [copied, tell] = useState('')
  const port = typed ?? String(ports[0] ?? 8888)
  const good = /^[1-9][0-9]{0,4}$/.test(port) && Number(port) < 65536
  const here = Number(port) < 1024 ? Number(port) + 8000 : Number(port) // lower ones are root's to listen on
  const command = `gexec ${rank ? `--rank ${rank} ` : ''}--forward ${here}:${port} ${props.job.id}`
  const address = `http://localhost:${here}/`
  const copy = () => navigator.clipboard.writeText(command).then(() => tell('copied'), () => tell('The browser does not let this page copy: mark the command and copy it.'))
  return (
    <details>
      <summary>Reach a port of this job</summary>
      <div class="bar">
        <Ranks job={props.job} now />
        <label>
          <span>Port in the job</span>
          <input inputMode="numeric" list="ports-of-the-job" value={port} aria-invalid={!good} onInput={(e) => (type(e.currentTarget.value.trim()), tell(''))} />
          <datalist id="ports-of-the-job">
            {ports.map((p) => (
              <option key={p}>{p}</option>
            ))}
          </datalist>
        </label>
        {good && (
          <button type="button" onClick={copy}>
            Copy the command
          </button>
        )}
        <p class="quiet" role="status">
          {good ? copied : 'A port is a number from 1 to 65535.'}
        </p>
      </div>
      {good && (
        <p>
          On the machine of your browser run <code class="command">{command}</code> and open{' '}
          <a href={address} target="_blank" rel="noopener noreferrer">
            {address}
          </a>
          . The connections go through the controller as yours, and nobody else sees the port.
        </p>
      )}
    </details>
  )
}

// portsOf are the ports that a job says it serves, in a rank of its last try.
function portsOf(job: api.JobDetail, rank: number): number[] {
  const mapped = (job.attempts ?? []).at(-1)?.ranks?.[rank]?.ports ?? []
  return [...new Set(mapped.map((p) => p.containerPort))]
}
