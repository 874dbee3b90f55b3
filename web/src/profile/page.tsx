// All stacks of a service, also those without a span.
import { useState } from "preact/hooks";
import type { StackFilter } from "../api";
import { selection } from "../stacks/filter";
import { StackView } from "../stacks/view";
import { SINCE, sinceUs } from "../traces/filters";
import { change, status } from "../ui/answers";
import { Exports } from "../ui/exports";
import { Choice } from "../ui/field";
import { param } from "../ui/url";
import { toggleState } from "../trace/span";
import { PART_NAMES, STATES } from "../ui/split";

export function ProfilePage() {
  const [openedAt] = useState(Date.now() * 1000);
  const [shown, setShown] = useState(0);
  const services = status.value?.services ?? [];
  const base: StackFilter = {};
  if (param("service")) base.service = param("service");
  const since = sinceUs(param("since"), status.value?.now_us ?? openedAt);
  if (since) base.since_us = since;
  const states = param("state").split(",");
  return (
    <div class="page">
      <h1>Profiles</h1>
      <div class="filters">
        <Choice name="service" label="Service" options={[["", "any"], ...services.map((one): [string, string] => [one, one])]} />
        <Choice name="since" label="Since" options={SINCE} />
        <span class="legend" role="group" aria-label="States">
          {STATES.map((state) => (
            <button key={state} class="part" aria-pressed={states.includes(state)} onClick={() => toggleState(state)}>
              <i class={`swatch fill-${state}`} /> {PART_NAMES[state]}
            </button>
          ))}
        </span>
        <Exports filter={selection(base)} />
        <button onClick={() => setShown(change.value?.revision ?? shown + 1)}>Refresh</button>
      </div>
      <p class="dim small">All samples, also those of no span: what the process does beside its requests.</p>
      <StackView base={base} root={param("service") || "all services"} again={shown} />
    </div>
  );
}
