// SPDX-License-Identifier: BSD-2-Clause
/* The state of processes as tables for people. */
#include <inttypes.h>
#include <string.h>

#include <dat/udat.h>

#include "common.h"
#include "live.h"

/* What the columns of counters show: totals, or how much was added in each second. */
struct rate {
	const struct live_process *before; /* NULL: totals */
	double seconds;
};

static const struct live_object *find_before(const struct rate *rate,
					     const struct live_object *object)
{
	return rate->before ? live_same(rate->before, object) : NULL;
}

/* A number in at most 7 characters: 9999999, 12.3M. */
static const char *short_number(double number, char text[16])
{
	static const char units[] = "kMGTPE";
	int unit = -1;

	if (number < 0)
		number = 0;
	if (number < 10000000) {
		snprintf(text, 16, "%.0f", number);
		return text;
	}
	while (number >= 10000 && unit < 5) {
		number /= 1000;
		unit++;
	}
	snprintf(text, 16, "%.1f%c", number, units[unit]);
	return text;
}

static void print_counter(FILE *out, const struct rate *rate, uint64_t now, uint64_t before,
			  int width)
{
	double value = (double)now;
	char text[16];

	if (rate->before)
		value = rate->seconds > 0 ? (value - (double)before) / rate->seconds : 0;
	fprintf(out, " %*s", width, short_number(value, text));
}

/* "127.0.0.1 port 5000", or "-". */
static const char *peer_text(const struct live_object *ep, char *text, size_t size)
{
	const struct sockaddr *address = (const struct sockaddr *)(const void *)&ep->peer;
	char host[64];

	if (!live_value(ep, OPENDAT_STAT_EP_PEER_PORT))
		return "-";
	snprintf(text, size, "%s port %" PRIu64, tool_address_text(address, host, sizeof(host)),
		 live_value(ep, OPENDAT_STAT_EP_PEER_PORT));
	return text;
}

static void print_ep(FILE *out, const struct live_object *ep, const struct rate *rate)
{
	const struct live_object *old = find_before(rate, ep);
	char queue[2][32], peer[96];
	uint64_t failed = live_value(ep, OPENDAT_STAT_EP_FAILED);

	snprintf(queue[0], sizeof(queue[0]), "%" PRIu64 "/%" PRIu64,
		 live_outstanding(ep, OPENDAT_STAT_EP_REQUEST_HEAD, OPENDAT_STAT_EP_REQUEST_TAIL,
				  OPENDAT_STAT_EP_REQUEST_ROOM),
		 live_value(ep, OPENDAT_STAT_EP_REQUEST_ROOM));
	snprintf(queue[1], sizeof(queue[1]), "%" PRIu64 "/%" PRIu64,
		 live_outstanding(ep, OPENDAT_STAT_EP_RECV_HEAD, OPENDAT_STAT_EP_RECV_TAIL,
				  OPENDAT_STAT_EP_RECV_ROOM),
		 live_value(ep, OPENDAT_STAT_EP_RECV_ROOM));
	fprintf(out, "    %-5" PRIu32 " %-13s %-5s %-26s %9s %9s", ep->number,
		live_state_name(live_value(ep, OPENDAT_STAT_EP_STATE)),
		live_path_name(live_value(ep, OPENDAT_STAT_EP_PATH)),
		peer_text(ep, peer, sizeof(peer)), queue[0], queue[1]);
	for (enum live_op op = 0; op < LIVE_OPS; op++)
		print_counter(out, rate, live_ops(ep, op), old ? live_ops(old, op) : 0, 8);
	print_counter(out, rate, live_bytes(ep, LIVE_SEND) + live_bytes(ep, LIVE_WRITE),
		      old ? live_bytes(old, LIVE_SEND) + live_bytes(old, LIVE_WRITE) : 0, 8);
	print_counter(out, rate, live_bytes(ep, LIVE_READ) + live_bytes(ep, LIVE_RECV),
		      old ? live_bytes(old, LIVE_READ) + live_bytes(old, LIVE_RECV) : 0, 8);
	print_counter(out, rate, failed, old ? live_value(old, OPENDAT_STAT_EP_FAILED) : 0, 6);
	print_counter(out, rate, live_value(ep, OPENDAT_STAT_EP_WAKEUPS),
		      old ? live_value(old, OPENDAT_STAT_EP_WAKEUPS) : 0, 8);
	fputc('\n', out);
}

static void print_evd(FILE *out, const struct live_object *evd, const struct rate *rate)
{
	const struct live_object *old = find_before(rate, evd);

	fprintf(out, "    %-5" PRIu32 " %7" PRIu64 "/%-7" PRIu64, evd->number,
		live_outstanding(evd, OPENDAT_STAT_EVD_HEAD, OPENDAT_STAT_EVD_TAIL,
				 OPENDAT_STAT_EVD_ROOM),
		live_value(evd, OPENDAT_STAT_EVD_ROOM));
	print_counter(out, rate, live_value(evd, OPENDAT_STAT_EVD_TAIL),
		      old ? live_value(old, OPENDAT_STAT_EVD_TAIL) : 0, 8);
	print_counter(out, rate, live_value(evd, OPENDAT_STAT_EVD_WAKEUPS),
		      old ? live_value(old, OPENDAT_STAT_EVD_WAKEUPS) : 0, 8);
	fprintf(out, "  %s%s\n", live_value(evd, OPENDAT_STAT_EVD_HAS_WAITER) ? "waiter" : "-",
		live_value(evd, OPENDAT_STAT_EVD_OVERFLOWED) ? " overflow" : "");
}

static void print_srq(FILE *out, const struct live_object *srq, const struct rate *rate)
{
	(void)rate;
	fprintf(out,
		"    %-5" PRIu32 " %9" PRIu64 " %11" PRIu64 " %7" PRIu64 " %9" PRIu64 " %7" PRIu64
		"\n",
		srq->number, live_srq_available(srq), live_value(srq, OPENDAT_STAT_SRQ_OUTSTANDING),
		live_value(srq, OPENDAT_STAT_SRQ_ROOM), live_value(srq, OPENDAT_STAT_SRQ_ENDPOINTS),
		live_value(srq, OPENDAT_STAT_SRQ_WAITING));
}

static void print_listener(FILE *out, const struct live_object *sp, const struct rate *rate)
{
	(void)rate;
	fprintf(out, "    %-5" PRIu32 " %s on %" PRIu64 "\n", sp->number, live_type_name(sp->type),
		live_value(sp, OPENDAT_STAT_SP_QUALIFIER));
}

/* One table: the objects of one type in one instance. */
static void print_table(FILE *out, const struct live_process *process, uint32_t index,
			unsigned int type, const char *head,
			void (*print)(FILE *out, const struct live_object *object,
				      const struct rate *rate),
			const struct rate *rate)
{
	if (!process->instances[index].count[type])
		return;
	fprintf(out, "%s\n", head);
	for (uint32_t i = 0; i < process->object_count; i++)
		if (process->objects[i].type == type && process->objects[i].instance_index == index)
			print(out, &process->objects[i], rate);
}

static void print_instance(FILE *out, const struct live_process *process, uint32_t index,
			   const struct rate *rate)
{
	const struct live_instance *instance = &process->instances[index];
	const struct sockaddr *own = (const struct sockaddr *)(const void *)&instance->own;
	char host[64], bytes[16];

	fprintf(out, "  adapter %s (ia %" PRIu32 "), device %s, address %s, %s of OpenDAT %s\n  ",
		instance->name, instance->number, instance->device,
		tool_address_text(own, host, sizeof(host)), instance->library, instance->release);
	for (unsigned int type = 0; type < LIVE_TYPES; type++)
		if (instance->count[type] && live_type_name(type))
			fprintf(out, "  %" PRIu32 " %s", instance->count[type],
				live_type_name(type));
	fprintf(out, "  %s bytes registered\n", short_number((double)instance->registered, bytes));
	print_table(out, process, index, DAT_HANDLE_TYPE_PSP, "    listeners", print_listener,
		    rate);
	print_table(out, process, index, DAT_HANDLE_TYPE_RSP, "    listeners for one endpoint",
		    print_listener, rate);
	print_table(
		out, process, index, DAT_HANDLE_TYPE_EP,
		"    ep    state         path  peer                        requests  receives"
		"    sends   writes    reads    binds messages      out       in failed wake-ups",
		print_ep, rate);
	print_table(out, process, index, DAT_HANDLE_TYPE_EVD,
		    "    evd    queued/room      events wake-ups", print_evd, rate);
	print_table(out, process, index, DAT_HANDLE_TYPE_SRQ,
		    "    srq   available outstanding    room endpoints waiting", print_srq, rate);
}

void live_print_text(FILE *out, const struct live_process *process,
		     const struct live_process *before)
{
	struct rate rate = {.before = before};

	if (before)
		rate.seconds = (double)(process->time_ns - before->time_ns) / 1e9;
	fprintf(out, "process %d (%s)%s\n", (int)process->pid, process->name,
		before ? ", counters per second" : "");
	for (uint32_t i = 0; i < process->instance_count; i++)
		print_instance(out, process, i, &rate);
	if (process->is_truncated)
		fputs("  and more objects, which are not shown\n", out);
}

void live_print_list(FILE *out, const struct live_list *list)
{
	fprintf(out, "%-8s %-16s %8s %8s  %s\n", "pid", "name", "ep", "evd", "adapters");
	for (size_t i = 0; i < list->count; i++) {
		const struct live_process *process = list->processes[i];
		uint32_t eps = 0, evds = 0;

		for (uint32_t n = 0; n < process->instance_count; n++) {
			eps += process->instances[n].count[DAT_HANDLE_TYPE_EP];
			evds += process->instances[n].count[DAT_HANDLE_TYPE_EVD];
		}
		fprintf(out, "%-8d %-16s %8" PRIu32 " %8" PRIu32 " ", (int)process->pid,
			process->name, eps, evds);
		for (uint32_t n = 0; n < process->instance_count; n++)
			fprintf(out, " %s", process->instances[n].name);
		fputc('\n', out);
	}
}
