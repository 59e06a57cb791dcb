import { useState } from 'preact/hooks'
import type * as api from './api'
import { useLate } from './ask'
import { Dialog, Trouble } from './dialog'
import { change } from './http'
import { usePages } from './pages'
import { Plan } from './plan'
import { Link, setQuery, usePlace } from './route'
import { operator } from './session'
import { useEvents } from './stream'
import { Virtual } from './virtual'
import { When } from './when'
import { Time, bytes, count } from './words'

const lineHeight = 44

const name = (n: api.Node) => n.name
const lines = (a: api.ClusterInfo) => ({ lines: a.nodes ?? [], total: a.total ?? 0 })

const views = ['nodes', 'plan']

// Cluster is the nodes and their GPUs: what is wrong first. Another view of them is
// what they are to do.
export function Cluster() {
  const q = usePlace().query
  const view = views.includes(q.get('view') ?? '') ? q.get('view')! : 'nodes'
  const model = q.get('model') ?? ''
  const text = q.get('text') ?? ''
  const query = new URLSearchParams({ worst: 'true', model, text: text.slice(0, 200) }).toString()
  const asking = useLate(query)
  const nodes = usePages<api.Node, api.ClusterInfo>('/v1/cluster?' + asking, name, lines, 10_000) // what is used changes without an event
  useEvents('nodes=true&job=', { node: () => nodes.reload(), reset: () => nodes.reload() })
  const all = nodes.last
  const [asked, ask] = useState<api.Node>() // to drain, or to resume
  return (
    <>
      <div class="bar">
        <h1>Cluster</h1>
        <form class="filters" role="search" onSubmit={(e: Event) => e.preventDefault()}>
          <label>
            <span>GPU model</span>
            <select value={model} onChange={(e) => setQuery({ model: e.currentTarget.value })}>
              <option value="">any</option>
              {[...new Set([...(all?.models ?? []), ...(model ? [model] : [])])].map((m) => (
                <option key={m}>{m}</option>
              ))}
            </select>
          </label>
          <label>
            <span>Search</span>
            <input type="search" value={text} placeholder="node, feature, reason" onInput={(e) => setQuery({ text: e.currentTarget.value })} />
          </label>
        </form>
        <p class="quiet" aria-live="polite">
          {all ? [count(all.total ?? 0, 'node'), count(all.numGpus ?? 0, 'GPU'), `${(all.numFreeGpus ?? 0).toLocaleString('en')} free`].join(', ') : 'reading …'}
        </p>
      </div>
      <When models={all?.models ?? []} />
      <div class="tabs" role="tablist" aria-label="Views of the cluster">
        {views.map((v) => (
          <button key={v} type="button" role="tab" aria-selected={v === view} onClick={() => setQuery({ view: v === 'nodes' ? '' : v })}>
            {v}
          </button>
        ))}
      </div>
      <section role="tabpanel" aria-label={view}>
        {view === 'plan' ? <Plan query={asking} /> : <Nodes nodes={nodes} drain={ask} />}
      </section>
      {asked && <Drain node={asked} leave={() => ask(undefined)} changed={() => nodes.reload()} />}
    </>
  )
}

type Read = ReturnType<typeof usePages<api.Node, api.ClusterInfo>>

function Nodes(props: { nodes: Read; drain: (n: api.Node) => void }) {
  const { nodes } = props
  return (
    <>
      <Trouble of={nodes.failed} />
      {!nodes.loading && nodes.pages.total === 0 ? (
        <p class="empty">No nodes here.</p>
      ) : (
        <Virtual
          count={nodes.pages.total}
          height={lineHeight}
          label="Nodes"
          see={nodes.see}
          head={
            <tr>
              <th>Node</th>
              <th>State</th>
              <th>GPUs</th>
              <th class="wide number">Hottest</th>
              <th class="wide">Jobs</th>
              <th class="wide number">CPUs</th>
              <th class="wide number">Memory</th>
              <th class="wide grow">Why</th>
              {operator() && <th>What to do</th>}
            </tr>
          }
          line={(i) => <Line key={i} node={nodes.pages.at(i)} index={i} drain={props.drain} />}
        />
      )}
    </>
  )
}

function Line(props: { node?: api.Node; index: number; drain: (n: api.Node) => void }) {
  const n = props.node
  if (!n) {
    return (
      <tr aria-rowindex={props.index + 2}>
        <td colSpan={9} class="quiet">
          …
        </td>
      </tr>
    )
  }
  return (
    <tr aria-rowindex={props.index + 2} class="node">
      <td class="name" title={n.name}>
        {n.name}
      </td>
      <td title={n.reason}>
        <span class={'state ' + (n.state === 'up' ? 'good' : 'bad')}>{n.state}</span>
      </td>
      <td>
        <ul class="gpus">
          {(n.gpus ?? []).map((g) => (
            <GPU key={g.uuid} gpu={g} />
          ))}
        </ul>
      </td>
      <td class="wide number">{hottest(n)}</td>
      <td class="wide">{n.jobs > 0 && <Link to={'/jobs?user=*&text=' + encodeURIComponent(n.name)}>{count(n.jobs, 'job')}</Link>}</td>
      <td class="wide number">
        {n.cpus.total - n.cpus.free} of {n.cpus.total}
      </td>
      <td class="wide number">
        {bytes(n.memBytes.total - n.memBytes.free)} of {bytes(n.memBytes.total)}
      </td>
      <td class="wide grow" title={n.reason}>
        {n.reason}
        {n.reason && n.since && (
          <>
            , since <Time at={n.since} />
          </>
        )}
        {n.simulated && ' GPUs are simulated'}
      </td>
      {operator() && (
        <td>
          <button type="button" onClick={() => props.drain(n)}>
            {drained(n) ? 'Resume' : 'Drain'}
          </button>
        </td>
      )}
    </tr>
  )
}

// hottest is how hot the hottest GPU of a node is.
function hottest(n: api.Node): string {
  const all = (n.gpus ?? []).flatMap((g) => (g.celsius === undefined ? [] : [g.celsius]))
  return all.length > 0 ? `${Math.round(Math.max(...all))} °C` : ''
}

function GPU(props: { gpu: api.GPU }) {
  const g = props.gpu
  const used = (1000 - g.freeMilli) / 10
  const look = g.unhealthy ? 'bad' : used > 0 ? 'runs' : 'free'
  const busy = g.utilization === undefined ? '' : `, ${Math.round(g.utilization)} % busy`
  const memory = g.memUsedBytes === undefined ? '' : `, ${bytes(g.memUsedBytes)} of ${bytes(g.memBytes)} used`
  const heat = g.celsius === undefined ? '' : `, ${Math.round(g.celsius)} °C`
  const words = `GPU ${g.index} ${g.model}: ` + (g.unhealthy ? g.unhealthy : used > 0 ? `${used} % granted${g.job ? ' to job ' + g.job : ''}${busy}${memory}` : 'free') + heat
  return (
    <li class={'gpu ' + look} title={words}>
      <span class="unseen">{words}</span>
      <span class="fill" aria-hidden="true" style={{ height: (g.utilization ?? 0) + '%' }} />
      {g.job ? <Link to={'/jobs/' + g.job}>{g.index}</Link> : <span aria-hidden="true">{g.index}</span>}
    </li>
  )
}

const drained = (n: api.Node): boolean => n.state === 'drained' || n.state === 'draining'

function Drain(props: { node: api.Node; leave: () => void; changed: () => void }) {
  const [reason, setReason] = useState('')
  const [busy, work] = useState(false)
  const [failed, fail] = useState<unknown>()
  const back = drained(props.node)
  const does = back ? 'Resume' : 'Drain'
  const act = async () => {
    work(true)
    try {
      await change('POST', `/v1/nodes/${encodeURIComponent(props.node.name)}/${does.toLowerCase()}`, back ? {} : { reason })
      props.leave()
      props.changed()
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  return (
    <Dialog title={`${does} ${props.node.name}?`} yes={does} busy={busy || (!back && !reason.trim())} onYes={act} onNo={props.leave}>
      {back ? (
        <p>Jobs may start there again.</p>
      ) : (
        <>
          <p>What runs there goes on; nothing new starts there until it is resumed.</p>
          <label>
            <span>Why</span>
            <input value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
          </label>
        </>
      )}
      <Trouble of={failed} />
    </Dialog>
  )
}
