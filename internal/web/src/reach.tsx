import { useEffect, useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import { change, read } from './http'
import { printedPath } from './printed'
import { Ranks, useRank } from './ranks'

// Reach says how a browser comes to a port of a running job: where the site has a domain
// for it by a click, at a host name of the port's own, and else by the command that brings
// it to the user's own machine. Below this page's address it is not shown: what a job
// serves would be a part of this page to the browser, and could act as its user.
export function Reach(props: { job: api.JobDetail }) {
  const { rank } = useRank(props.job)
  const ports = portsOf(props.job, rank)
  const [typed, type] = useState<string>()
  const [copied, tell] = useState('')
  const site = useSite()
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
        {good && site?.jobsDomain && <Open key={rank + ':' + port} id={props.job.id} rank={rank} port={Number(port)} />}
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
      {site && !site.jobsDomain && (
        <p class="quiet">
          A click opens it here where the site has a domain for it: operators set <code>web.jobsDomain</code> in <code>gctld.yaml</code>.
        </p>
      )}
    </details>
  )
}

function useSite(): api.Site | undefined {
  const [site, know] = useState<api.Site>()
  useEffect(() => void read<api.Site>('/v1/site').then(know, () => undefined), [])
  return site
}

// Open opens a port in another tab, where the address that the job has printed leads.
function Open(props: { id: string; rank: number; port: number }) {
  const [address, lead] = useState('')
  const [busy, work] = useState(false)
  const [failed, fail] = useState<unknown>()
  const open = async () => {
    work(true)
    fail(undefined)
    try {
      const path = await printedPath(props.id, props.rank, props.port)
      const to = await change<api.PortLink>('POST', `/v1/jobs/${encodeURIComponent(props.id)}/ports/${props.port}`, { rank: props.rank, path })
      const link = `https://${to.host}${location.port && ':' + location.port}/.gbatch/enter#${to.secret}`
      window.open(link, '_blank', 'noopener,noreferrer')
      lead(link)
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  return (
    <>
      <button type="button" disabled={busy} onClick={open}>
        Open in a tab
      </button>
      <span role="status">
        {address && (
          <>
            Opened in another tab. If your browser kept it back:{' '}
            <a href={address} target="_blank" rel="noopener noreferrer">
              open it
            </a>
            , once and within a minute.
          </>
        )}
      </span>
      <Trouble of={failed} />
    </>
  )
}

// portsOf are the ports that a job says it serves, in a rank of its last try.
function portsOf(job: api.JobDetail, rank: number): number[] {
  const mapped = (job.attempts ?? []).at(-1)?.ranks?.[rank]?.ports ?? []
  return [...new Set(mapped.map((p) => p.containerPort))]
}
