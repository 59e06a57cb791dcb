import { useState } from 'preact/hooks'
import type * as api from './api'
import { type Placed, stacked, wordsOf } from './chart'
import { Trouble } from './dialog'
import { usePages } from './pages'
import { Link } from './route'
import { useEvents } from './stream'
import { Virtual } from './virtual'

const lineHeight = 44

const name = (n: api.PlanNode) => n.name
const lines = (a: api.Plan) => ({ lines: a.nodes ?? [], total: a.total })

// What is shown of the time to come, by its name.
const lengths: Record<string, number> = { '6 hours': 6, '1 day': 24, '3 days': 72, '2 weeks': 336 }

const looks: Record<string, string> = { running: 'runs', promised: 'waits', reserved: 'prepares', maintenance: 'ends' }

// Plan is what nodes do and are to do, as bars over the time from now on.
export function Plan(props: { query: string }) {
  const [length, choose] = useState('1 day')
  const nodes = usePages<api.PlanNode, api.Plan>('/v1/plan?' + props.query, name, lines, 10_000)
  useEvents('nodes=true&job=', { node: () => nodes.reload(), reset: () => nodes.reload() })
  const from = nodes.last ? Date.parse(nodes.last.now) : Date.now()
  const span = lengths[length]! * 3600_000
  return (
    <>
      <div class="bar">
        <label>
          <span>The next</span>
          <select value={length} onChange={(e) => choose(e.currentTarget.value)}>
            {Object.keys(lengths).map((l) => (
              <option key={l}>{l}</option>
            ))}
          </select>
        </label>
        <p class="quiet">
          {Object.entries(looks).map(([kind, look]) => (
            <span key={kind}>
              <span class={'key ' + look} /> {kind}{' '}
            </span>
          ))}
        </p>
        <p class="quiet">Bars end with the time limit: a job that ends sooner makes room sooner.</p>
      </div>
      <Trouble of={nodes.failed} />
      {!nodes.loading && nodes.pages.total === 0 ? (
        <p class="empty">No nodes here.</p>
      ) : (
        <Virtual
          count={nodes.pages.total}
          height={lineHeight}
          label="Plan of the nodes"
          see={nodes.see}
          head={
            <tr>
              <th>Node</th>
              <th class="planned">
                <Scale from={from} span={span} />
              </th>
            </tr>
          }
          line={(i) => <Line key={i} node={nodes.pages.at(i)} index={i} from={from} span={span} />}
        />
      )}
    </>
  )
}

// Scale is the clock over the bars.
function Scale(props: { from: number; span: number }) {
  const parts = 4
  return (
    <span class="scale">
      {Array.from({ length: parts }, (_, i) => {
        const at = new Date(props.from + (i * props.span) / parts)
        const day = props.span > 24 * 3600_000 || at.toDateString() !== new Date(props.from).toDateString()
        const options: Intl.DateTimeFormatOptions = day ? { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } : { hour: '2-digit', minute: '2-digit' }
        return (
          <time key={i} dateTime={at.toISOString()} title={at.toISOString()}>
            {i === 0 ? 'now' : at.toLocaleString([], options)}
          </time>
        )
      })}
    </span>
  )
}

function Line(props: { node?: api.PlanNode; index: number; from: number; span: number }) {
  const n = props.node
  const bars = n ? stacked(n.spans ?? [], props.from, props.span) : []
  return (
    <tr aria-rowindex={props.index + 2} class="node">
      <td class="name" title={n?.name}>
        {n?.name ?? '…'}
      </td>
      <td class="planned">
        {n && (
          <ul class="chart">
            {bars.map((b, i) => (
              <Bar key={i} bar={b} gpus={n.gpus} />
            ))}
          </ul>
        )}
      </td>
    </tr>
  )
}

function Bar(props: { bar: Placed; gpus: number }) {
  const { span, left, width, row, rows } = props.bar
  const words = wordsOf(span, props.gpus)
  const place = { left: left + '%', width: width + '%', top: (row / rows) * 100 + '%', height: 100 / rows + '%' }
  const label = span.job ?? span.name
  return (
    <li class={'planbar ' + looks[span.kind]} style={place} title={words}>
      <span class="unseen">{words}</span>
      {rows <= 2 && (span.job ? <Link to={'/jobs/' + span.job}>{label}</Link> : <span aria-hidden="true">{label}</span>)}
    </li>
  )
}
