// SPDX-License-Identifier: BSD-2-Clause
/* A sequence as text, and what else only looks at one. */
#include "sequence.h"

int sequence_evd(const struct sequence *sequence, int side, int ep, enum stream stream)
{
	switch (sequence->shape[side].layout) {
	case LAYOUT_SEPARATE:
		return (int)stream * EPS + ep;
	case LAYOUT_RECV:
		return stream == STREAM_REQUEST ? (int)stream * EPS + ep : (int)stream * EPS;
	default:
		return 0;
	}
}

uint32_t step_len(const struct step *step)
{
	uint32_t len = 0;

	for (int i = 0; i < step->segments; i++)
		len += step->len[i];
	return len;
}

static void print_local(FILE *file, const struct step *step)
{
	static const char *const mistakes[MISTAKES] = {
		"",	      " (beyond its region)", " (99 segments)", " (wrong flags)",
		" (no room)", " (region freed)",      " (queue full)",	" (draining)",
	};

	fprintf(file, " [");
	for (int i = 0; i < step->segments; i++)
		fprintf(file, "%s%u", i ? "+" : "", step->len[i]);
	fprintf(file, "]%s", mistakes[step->mistake]);
	if (step->source >= 0)
		fprintf(file, " of what step %d reads", step->source);
}

static void print_flags(FILE *file, DAT_COMPLETION_FLAGS flags)
{
	static const char *const names[] = {"suppressed", "solicited", "unsignalled", "fenced"};

	for (int i = 0; i < 4; i++)
		if ((unsigned)flags >> i & 1)
			fprintf(file, " %s", names[i]);
}

static void print_remote(FILE *file, const struct step *step)
{
	fprintf(file, " %s %u+%u key ", step->area == AREA_TARGET ? "target" : "window",
		step->offset, step->range);
	if (step->key >= 0)
		fprintf(file, "of step %d", step->key);
	else
		fprintf(file, "%s",
			step->key == KEY_FIRST	? "first"
			: step->key == KEY_ZERO ? "0"
						: "unknown");
}

static void print_arguments(FILE *file, const struct sequence *sequence, const struct step *step)
{
	static const char *const regions[REGIONS] = {"source", "sink", "target", "window"};

	switch (step->op) {
	case OP_SEND:
	case OP_RECV:
		print_local(file, step);
		break;
	case OP_WRITE:
	case OP_READ:
		print_local(file, step);
		print_remote(file, step);
		break;
	case OP_BIND:
		fprintf(file, " %u+%u privileges 0x%x", step->offset, step->range,
			(unsigned)step->privileges);
		break;
	case OP_DISCONNECT:
		fprintf(file, step->is_graceful ? " graceful" : " abrupt");
		fprintf(file, step->is_racy ? " at once" : "");
		break;
	case OP_LMR_FREE:
	case OP_LMR_CREATE:
		fprintf(file, " %s", regions[step->region]);
		break;
	case OP_TAKE:
		fprintf(file, " %d of its requests", step->count);
		break;
	case OP_SETTLE:
		for (int side = 0; side < SIDES; side++) {
			fprintf(file, " %c", 'A' + side);
			for (int evd = 0; evd < EVDS; evd++)
				if (sequence->settle[step->count].take[side][evd])
					fprintf(file, " %d:%d", evd,
						sequence->settle[step->count].take[side][evd]);
		}
		break;
	default:
		break;
	}
	print_flags(file, step->flags);
}

void step_print(FILE *file, const struct sequence *sequence, int number)
{
	static const char *const names[] = {
		"send",	    "rdma_write", "rdma_read",	"rmr_bind", "recv",
		"srq_recv", "disconnect", "ep_create",	"ep_free",  "ep_reset",
		"connect",  "lmr_free",	  "lmr_create", "take",	    "settle",
	};
	const struct step *step = &sequence->step[number];

	if (step->op == OP_SETTLE)
		fprintf(file, "%3d   %s", number, names[step->op]);
	else
		fprintf(file, "%3d %c %s", number, 'A' + step->side, names[step->op]);
	if ((step->op < OP_LMR_FREE && step->op != OP_SRQ_RECV) || step->op == OP_TAKE)
		fprintf(file, " ep%d", step->ep);
	print_arguments(file, sequence, step);
	fputc('\n', file);
}

void sequence_print(FILE *file, const struct sequence *sequence)
{
	static const char *const layouts[] = {"EVDs of their own", "one receive EVD", "one EVD"};

	fprintf(file, "%d endpoints, %d requests, %d Receives\n", sequence->eps, sequence->requests,
		sequence->recvs);
	for (int side = 0; side < SIDES; side++) {
		const struct shape_side *shape = &sequence->shape[side];

		fprintf(file, "%c: %s%s%s%s, %s\n", 'A' + side, layouts[shape->layout],
			shape->has_srq ? ", SRQ" : "", shape->is_unsignalled ? ", unsignalled" : "",
			shape->is_solicited ? ", solicited" : "", shape->waits ? "waits" : "polls");
	}
	for (int number = 0; number < sequence->steps; number++)
		step_print(file, sequence, number);
}
