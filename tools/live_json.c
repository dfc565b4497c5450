// SPDX-License-Identifier: BSD-2-Clause
/* The state of processes as one JSON object in one line. man/dat_stat.1 describes the members. */
#include <inttypes.h>

#include <dat/udat.h>

#include "common.h"
#include "live.h"

struct member {
	const char *name;
	enum opendat_stat_number number;
};

static void print_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":", name);
	tool_json_string(out, text);
	fputc(',', out);
}

static void print_address(FILE *out, const char *name, const struct sockaddr_in6 *address)
{
	char text[64];

	print_text(out, name,
		   tool_address_text((const struct sockaddr *)(const void *)address, text,
				     sizeof(text)));
}

static void print_members(FILE *out, const struct live_object *object, const struct member *members,
			  size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(out, ",\"%s\":%" PRIu64, members[i].name,
			live_value(object, members[i].number));
}
#define PRINT_MEMBERS(out, object, members)                                                        \
	print_members(out, object, members, sizeof(members) / sizeof((members)[0]))

/* The number of an object that this one uses, or null. */
static void print_use(FILE *out, const struct live_process *process,
		      const struct live_object *object, const struct member *use)
{
	uint32_t number = live_find(process, object, use->number);

	if (number)
		fprintf(out, ",\"%s\":%" PRIu32, use->name, number);
	else
		fprintf(out, ",\"%s\":null", use->name);
}

static void print_ep(FILE *out, const struct live_process *process, const struct live_object *ep)
{
	static const struct member members[] = {
		{"peer_port", OPENDAT_STAT_EP_PEER_PORT},
		{"local_port", OPENDAT_STAT_EP_LOCAL_PORT},
		{"connections", OPENDAT_STAT_EP_CONNECTIONS},
		{"request_room", OPENDAT_STAT_EP_REQUEST_ROOM},
		{"receive_room", OPENDAT_STAT_EP_RECV_ROOM},
		{"failed", OPENDAT_STAT_EP_FAILED},
		{"flushed", OPENDAT_STAT_EP_FLUSHED},
		{"wakeups", OPENDAT_STAT_EP_WAKEUPS},
	};
	static const struct member uses[] = {
		{"receive_evd", OPENDAT_STAT_EP_RECV_EVD},
		{"request_evd", OPENDAT_STAT_EP_REQUEST_EVD},
		{"connect_evd", OPENDAT_STAT_EP_CONNECT_EVD},
		{"srq", OPENDAT_STAT_EP_SRQ},
	};

	print_text(out, "state", live_state_name(live_value(ep, OPENDAT_STAT_EP_STATE)));
	print_text(out, "path", live_path_name(live_value(ep, OPENDAT_STAT_EP_PATH)));
	print_address(out, "peer", &ep->peer);
	fprintf(out, "\"requests\":%" PRIu64 ",\"receives\":%" PRIu64,
		live_outstanding(ep, OPENDAT_STAT_EP_REQUEST_HEAD, OPENDAT_STAT_EP_REQUEST_TAIL,
				 OPENDAT_STAT_EP_REQUEST_ROOM),
		live_outstanding(ep, OPENDAT_STAT_EP_RECV_HEAD, OPENDAT_STAT_EP_RECV_TAIL,
				 OPENDAT_STAT_EP_RECV_ROOM));
	PRINT_MEMBERS(out, ep, members);
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		print_use(out, process, ep, &uses[i]);
	for (enum live_op op = 0; op < LIVE_OPS; op++) {
		fprintf(out, "%s\"%s\":%" PRIu64, op ? "," : ",\"operations\":{", live_op_names[op],
			live_ops(ep, op));
	}
	for (enum live_op op = 0; op < LIVE_OPS; op++) {
		if (op != LIVE_BIND)
			fprintf(out, "%s\"%s\":%" PRIu64, op ? "," : "},\"bytes\":{",
				live_op_names[op], live_bytes(ep, op));
	}
	fputc('}', out);
}

static void print_evd(FILE *out, const struct live_process *process, const struct live_object *evd)
{
	static const struct member members[] = {
		{"room", OPENDAT_STAT_EVD_ROOM},
		{"events", OPENDAT_STAT_EVD_TAIL},
		{"wakeups", OPENDAT_STAT_EVD_WAKEUPS},
		{"flags", OPENDAT_STAT_EVD_FLAGS},
	};

	(void)process;
	fprintf(out, "\"queued\":%" PRIu64 ",\"has_waiter\":%s,\"is_overflowed\":%s",
		live_outstanding(evd, OPENDAT_STAT_EVD_HEAD, OPENDAT_STAT_EVD_TAIL,
				 OPENDAT_STAT_EVD_ROOM),
		live_value(evd, OPENDAT_STAT_EVD_HAS_WAITER) ? "true" : "false",
		live_value(evd, OPENDAT_STAT_EVD_OVERFLOWED) ? "true" : "false");
	PRINT_MEMBERS(out, evd, members);
}

static void print_srq(FILE *out, const struct live_process *process, const struct live_object *srq)
{
	static const struct member members[] = {
		{"outstanding", OPENDAT_STAT_SRQ_OUTSTANDING},
		{"room", OPENDAT_STAT_SRQ_ROOM},
		{"endpoints", OPENDAT_STAT_SRQ_ENDPOINTS},
		{"waiting", OPENDAT_STAT_SRQ_WAITING},
	};

	(void)process;
	fprintf(out, "\"available\":%" PRIu64, live_srq_available(srq));
	PRINT_MEMBERS(out, srq, members);
}

static void print_region(FILE *out, const struct live_process *process,
			 const struct live_object *lmr)
{
	uint64_t privileges = live_value(lmr, OPENDAT_STAT_LMR_PRIVILEGES);

	(void)process;
	fprintf(out,
		"\"bytes\":%" PRIu64 ",\"remote_read\":%s,\"remote_write\":%s,\"windows\":%" PRIu64,
		live_value(lmr, OPENDAT_STAT_LMR_LENGTH),
		privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG ? "true" : "false",
		privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? "true" : "false",
		live_value(lmr, OPENDAT_STAT_LMR_BOUND));
}

static void print_listener(FILE *out, const struct live_process *process,
			   const struct live_object *sp)
{
	(void)process;
	fprintf(out, "\"qualifier\":%" PRIu64, live_value(sp, OPENDAT_STAT_SP_QUALIFIER));
}

static void print_array(FILE *out, const struct live_process *process, uint32_t index,
			const char *name, unsigned int type,
			void (*print)(FILE *out, const struct live_process *process,
				      const struct live_object *object))
{
	const char *separator = "";

	fprintf(out, ",\"%s\":[", name);
	for (uint32_t i = 0; i < process->object_count; i++) {
		const struct live_object *object = &process->objects[i];

		if (object->type != type || object->instance_index != index)
			continue;
		fprintf(out, "%s{\"number\":%" PRIu32 ",", separator, object->number);
		print(out, process, object);
		fputc('}', out);
		separator = ",";
	}
	fputc(']', out);
}

static void print_instance(FILE *out, const struct live_process *process, uint32_t index)
{
	const struct live_instance *instance = &process->instances[index];
	const char *separator = "";

	fprintf(out, "{\"number\":%" PRIu32 ",", instance->number);
	print_text(out, "name", instance->name);
	print_text(out, "device", instance->device);
	print_address(out, "address", &instance->own);
	print_text(out, "library", instance->library);
	print_text(out, "release", instance->release);
	fprintf(out, "\"registered_bytes\":%" PRIu64 ",\"objects\":{", instance->registered);
	for (unsigned int type = 0; type < LIVE_TYPES; type++) {
		if (live_type_name(type) && type != DAT_HANDLE_TYPE_IA) {
			fprintf(out, "%s\"%s\":%" PRIu32, separator, live_type_name(type),
				instance->count[type]);
			separator = ",";
		}
	}
	fputc('}', out);
	print_array(out, process, index, "endpoints", DAT_HANDLE_TYPE_EP, print_ep);
	print_array(out, process, index, "evds", DAT_HANDLE_TYPE_EVD, print_evd);
	print_array(out, process, index, "srqs", DAT_HANDLE_TYPE_SRQ, print_srq);
	print_array(out, process, index, "regions", DAT_HANDLE_TYPE_LMR, print_region);
	print_array(out, process, index, "listeners", DAT_HANDLE_TYPE_PSP, print_listener);
	print_array(out, process, index, "reserved_listeners", DAT_HANDLE_TYPE_RSP, print_listener);
	fputc('}', out);
}

void live_print_json(FILE *out, const struct live_list *list)
{
	char time[TOOL_TIME_TEXT];

	fprintf(out, "{\"time\":\"%s\",\"processes\":[", tool_time_text(time));
	for (size_t i = 0; i < list->count; i++) {
		const struct live_process *process = list->processes[i];

		fprintf(out, "%s{\"pid\":%d,", i ? "," : "", (int)process->pid);
		print_text(out, "name", process->name);
		fprintf(out, "\"is_truncated\":%s,\"adapters\":[",
			process->is_truncated ? "true" : "false");
		for (uint32_t n = 0; n < process->instance_count; n++) {
			if (n)
				fputc(',', out);
			print_instance(out, process, n);
		}
		fputs("]}", out);
	}
	fputs("]}\n", out);
}
