// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of processes in the text format of Prometheus (0.0.4), which its node_exporter and all
 * other scrapers read. docs/observing.md lists it.
 */
#include <inttypes.h>

#include <dat/udat.h>

#include "common.h"
#include "live.h"

/* One family of metrics: its head, and its samples for one object or instance. */
struct family {
	const char *name;
	const char *type; /* counter, gauge */
	const char *help;
	int object; /* the type of the objects that have it; -1: instances */
	/* of each object; 0: print() prints the samples */
	enum opendat_stat_number number;
	void (*print)(FILE *out, const struct family *family, const struct live_process *process,
		      const struct live_instance *instance, const struct live_object *object);
};

/* Prints "name{pid=...,endpoint=..." without the brace that ends it. */
static void begin(FILE *out, const struct family *family, const struct live_process *process,
		  const struct live_instance *instance, const struct live_object *object)
{
	/* the two rules of quoting are those of JSON for the characters that texts have */
	fprintf(out, "opendat_%s{pid=\"%d\",process=", family->name, (int)process->pid);
	tool_json_string(out, process->name);
	fputs(",adapter=", out);
	tool_json_string(out, instance->name);
	fprintf(out, ",ia=\"%" PRIu32 "\"", instance->number);
	if (object)
		fprintf(out, ",%s=\"%" PRIu32 "\"", live_type_name(object->type), object->number);
}

static void end(FILE *out, uint64_t value)
{
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void print_objects(FILE *out, const struct family *family,
			  const struct live_process *process, const struct live_instance *instance,
			  const struct live_object *object)
{
	(void)object;
	for (unsigned int type = 0; type < LIVE_TYPES; type++) {
		if (!live_type_name(type) || type == DAT_HANDLE_TYPE_IA)
			continue;
		begin(out, family, process, instance, NULL);
		fprintf(out, ",type=\"%s\"", live_type_name(type));
		end(out, instance->count[type]);
	}
}

static void print_registered(FILE *out, const struct family *family,
			     const struct live_process *process,
			     const struct live_instance *instance, const struct live_object *object)
{
	(void)object;
	begin(out, family, process, instance, NULL);
	end(out, instance->registered);
}

static void print_info(FILE *out, const struct family *family, const struct live_process *process,
		       const struct live_instance *instance, const struct live_object *ep)
{
	char text[64];

	begin(out, family, process, instance, ep);
	fprintf(out, ",state=\"%s\",path=\"%s\",peer=\"%s\",peer_port=\"%" PRIu64 "\"",
		live_state_name(live_value(ep, OPENDAT_STAT_EP_STATE)),
		live_path_name(live_value(ep, OPENDAT_STAT_EP_PATH)),
		tool_address_text((const struct sockaddr *)(const void *)&ep->peer, text,
				  sizeof(text)),
		live_value(ep, OPENDAT_STAT_EP_PEER_PORT));
	end(out, 1);
}

static void print_operations(FILE *out, const struct family *family,
			     const struct live_process *process,
			     const struct live_instance *instance, const struct live_object *ep)
{
	for (enum live_op op = 0; op < LIVE_OPS; op++) {
		begin(out, family, process, instance, ep);
		fprintf(out, ",operation=\"%s\"", live_op_names[op]);
		end(out, live_ops(ep, op));
	}
}

static void print_bytes(FILE *out, const struct family *family, const struct live_process *process,
			const struct live_instance *instance, const struct live_object *ep)
{
	for (enum live_op op = 0; op < LIVE_OPS; op++) {
		if (op == LIVE_BIND)
			continue;
		begin(out, family, process, instance, ep);
		fprintf(out, ",operation=\"%s\"", live_op_names[op]);
		end(out, live_bytes(ep, op));
	}
}

static void print_outstanding(FILE *out, const struct family *family,
			      const struct live_process *process,
			      const struct live_instance *instance, const struct live_object *ep)
{
	begin(out, family, process, instance, ep);
	fputs(",queue=\"request\"", out);
	end(out, live_outstanding(ep, OPENDAT_STAT_EP_REQUEST_HEAD, OPENDAT_STAT_EP_REQUEST_TAIL,
				  OPENDAT_STAT_EP_REQUEST_ROOM));
	begin(out, family, process, instance, ep);
	fputs(",queue=\"receive\"", out);
	end(out, live_outstanding(ep, OPENDAT_STAT_EP_RECV_HEAD, OPENDAT_STAT_EP_RECV_TAIL,
				  OPENDAT_STAT_EP_RECV_ROOM));
}

static void print_queued(FILE *out, const struct family *family, const struct live_process *process,
			 const struct live_instance *instance, const struct live_object *evd)
{
	begin(out, family, process, instance, evd);
	end(out, live_outstanding(evd, OPENDAT_STAT_EVD_HEAD, OPENDAT_STAT_EVD_TAIL,
				  OPENDAT_STAT_EVD_ROOM));
}

static void print_available(FILE *out, const struct family *family,
			    const struct live_process *process,
			    const struct live_instance *instance, const struct live_object *srq)
{
	begin(out, family, process, instance, srq);
	end(out, live_srq_available(srq));
}

#define EP DAT_HANDLE_TYPE_EP
#define EVD DAT_HANDLE_TYPE_EVD
#define SRQ DAT_HANDLE_TYPE_SRQ
static const struct family families[] = {
	{"objects", "gauge", "Objects of an adapter.", -1, 0, print_objects},
	{"registered_bytes", "gauge", "Registered memory.", -1, 0, print_registered},
	{"endpoint_info", "gauge", "Always 1; state, path and peer of an endpoint.", EP, 0,
	 print_info},
	{"endpoint_operations_total", "counter",
	 "Requests posted, and messages received, by operation.", EP, 0, print_operations},
	{"endpoint_bytes_total", "counter", "Bytes of these.", EP, 0, print_bytes},
	{"endpoint_outstanding", "gauge", "Posted and not completed.", EP, 0, print_outstanding},
	{"endpoint_connections_total", "counter", "Connections established.", EP,
	 OPENDAT_STAT_EP_CONNECTIONS, NULL},
	{"endpoint_failed_total", "counter", "Operations that failed.", EP, OPENDAT_STAT_EP_FAILED,
	 NULL},
	{"endpoint_flushed_total", "counter", "Operations that the end of a connection flushed.",
	 EP, OPENDAT_STAT_EP_FLUSHED, NULL},
	{"endpoint_wakeups_total", "counter", "Times that a sleeping peer was woken.", EP,
	 OPENDAT_STAT_EP_WAKEUPS, NULL},
	{"evd_queued", "gauge", "Events in the queue.", EVD, 0, print_queued},
	{"evd_room", "gauge", "Events that the queue can hold.", EVD, OPENDAT_STAT_EVD_ROOM, NULL},
	{"evd_events_total", "counter", "Events that went through the queue.", EVD,
	 OPENDAT_STAT_EVD_TAIL, NULL},
	{"evd_wakeups_total", "counter", "Times that a waiting thread was woken.", EVD,
	 OPENDAT_STAT_EVD_WAKEUPS, NULL},
	{"srq_available", "gauge", "Buffers that no message has taken.", SRQ, 0, print_available},
	{"srq_outstanding", "gauge", "Buffers posted and not given back.", SRQ,
	 OPENDAT_STAT_SRQ_OUTSTANDING, NULL},
	{"srq_waiting", "gauge", "Endpoints that wait for a buffer.", SRQ, OPENDAT_STAT_SRQ_WAITING,
	 NULL},
};

static void print_object(FILE *out, const struct family *family, const struct live_process *process,
			 const struct live_object *object)
{
	const struct live_instance *instance = &process->instances[object->instance_index];

	if (family->print) {
		family->print(out, family, process, instance, object);
		return;
	}
	begin(out, family, process, instance, object);
	end(out, live_value(object, family->number));
}

static void print_family(FILE *out, const struct family *family, const struct live_process *process)
{
	if (family->object < 0) {
		for (uint32_t i = 0; i < process->instance_count; i++)
			family->print(out, family, process, &process->instances[i], NULL);
		return;
	}
	for (uint32_t i = 0; i < process->object_count; i++)
		if (process->objects[i].type == (unsigned int)family->object)
			print_object(out, family, process, &process->objects[i]);
}

void live_print_metrics(FILE *out, const struct live_list *list)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct family *family = &families[i];

		fprintf(out, "# HELP opendat_%s %s\n", family->name, family->help);
		fprintf(out, "# TYPE opendat_%s %s\n", family->name, family->type);
		for (size_t n = 0; n < list->count; n++)
			print_family(out, family, list->processes[n]);
	}
}
