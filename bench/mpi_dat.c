// SPDX-License-Identifier: BSD-2-Clause
/*
 * The packets and fragments of mpi over DAT. A packet is an RDMA Write into the slot of the peer,
 * fragments are RDMA Writes, and credits are Sends. Each request has a completion.
 */
#include "mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dat/opendat.h>

#include "common.h"

#define DAT_RECVS 4u /* for credits; at most two Sends of them are under way */
#define DAT_REQUESTS (MPI_SLOTS + MPI_DEPTH + 2 * DAT_RECVS)

enum request { REQUEST_PACKET, REQUEST_FRAGMENT, REQUEST_CREDIT };

struct memory {
	unsigned char *data;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

/* The credits that a peer returns, and those that are returned to it. */
struct credits {
	uint64_t in[DAT_RECVS];
	uint64_t out[DAT_RECVS];
	uint64_t sent;
};

struct mpi_dat {
	struct session session;
	struct memory in, out, credits; /* boxes of all peers; struct credits of each */
	unsigned char *in_data, *out_data;
	DAT_EP_HANDLE endpoints[CREW_MAX];
	struct crew_hello ours[CREW_MAX], theirs[CREW_MAX];
	DAT_LMR_HANDLE targets[CREW_MAX][MPI_DEPTH], sources[CREW_MAX][MPI_DEPTH];
};

/* --- memory --- */

static int allocate(const struct mpi *mpi, uint64_t len, unsigned char **data_out)
{
	void *data = NULL;

	len = (len + 4095) / 4096 * 4096;
	if (mpi->setup->is_shared) {
		DAT_RETURN code = dat_opendat_mem_alloc(len, DAT_OPENDAT_MEM_DEFAULT, &data);

		if (code != DAT_SUCCESS)
			return tool_call_failed("dat_opendat_mem_alloc", code);
	} else if (posix_memalign(&data, 4096, len) != 0) {
		tool_complain("no memory for %llu bytes", (unsigned long long)len);
		return -ENOMEM;
	}
	memset(data, 0, len);
	*data_out = data;
	return 0;
}

static int register_memory(const struct mpi *mpi, unsigned char *data, uint64_t len,
			   DAT_LMR_HANDLE *lmr_out, struct memory *memory_out)
{
	const struct session *session = &mpi->dat->session;
	DAT_REGION_DESCRIPTION region = {.for_va = data};
	DAT_RETURN code = dat_lmr_create(
		session->ia, DAT_MEM_TYPE_VIRTUAL, region, len, session->pz, DAT_MEM_PRIV_ALL_FLAG,
		lmr_out, &memory_out->lmr_context, &memory_out->rmr_context, NULL, NULL);

	memory_out->data = data;
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_create", code);
}

static int make_memory(const struct mpi *mpi, uint64_t len, struct memory *memory_out)
{
	DAT_LMR_HANDLE lmr;
	unsigned char *data = NULL;
	int rc = allocate(mpi, len, &data);

	return rc == 0 ? register_memory(mpi, data, len, &lmr, memory_out) : rc;
}

static int make_all_memory(struct mpi *mpi)
{
	struct mpi_dat *dat = mpi->dat;
	uint64_t processes = mpi->member->processes;
	uint64_t size = (mpi->setup->size_max + 4095) / 4096 * 4096;
	int rc = make_memory(mpi, processes * MPI_BOX_LEN, &dat->in);

	if (rc == 0)
		rc = make_memory(mpi, processes * MPI_BOX_LEN, &dat->out);
	if (rc == 0)
		rc = make_memory(mpi, processes * sizeof(struct credits), &dat->credits);
	if (rc == 0)
		rc = allocate(mpi, processes * size, &dat->in_data);
	if (rc == 0)
		rc = allocate(mpi, processes * size, &dat->out_data);
	for (unsigned i = 0; i < processes && rc == 0; i++) {
		struct mpi_peer *peer = &mpi->peers[i];

		peer->link.in = dat->in.data + i * MPI_BOX_LEN;
		peer->link.out = dat->out.data + i * MPI_BOX_LEN;
		peer->in_data = dat->in_data + i * size;
		peer->out_data = dat->out_data + i * size;
		dat->ours[i].address = (uintptr_t)peer->link.in;
		dat->ours[i].rmr_context = dat->in.rmr_context;
	}
	return rc;
}

/* --- requests --- */

static DAT_DTO_COOKIE cookie_of(unsigned kind, unsigned rank, uint64_t index)
{
	return (DAT_DTO_COOKIE){.as_64 = index << 16 | kind << 8 | rank};
}

static int write_to(struct mpi *mpi, unsigned rank, const struct memory *own, uint64_t len,
		    DAT_RMR_TRIPLET remote, DAT_DTO_COOKIE cookie)
{
	DAT_LMR_TRIPLET local = {.lmr_context = own->lmr_context,
				 .virtual_address = (uintptr_t)own->data,
				 .segment_length = len};
	DAT_RETURN code;

	remote.segment_length = len;
	code = dat_ep_post_rdma_write(mpi->dat->endpoints[rank], 1, &local, cookie, &remote,
				      DAT_COMPLETION_DEFAULT_FLAG);
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_post_rdma_write", code);
}

static int dat_post(struct mpi *mpi, unsigned rank, uint64_t len)
{
	const struct mpi_link *link = &mpi->peers[rank].link;
	const struct crew_hello *theirs = &mpi->dat->theirs[rank];
	uint64_t offset = (link->posted % MPI_SLOTS + 1) * MPI_SLOT_LEN - len;
	struct memory own = mpi->dat->out;
	DAT_RMR_TRIPLET remote = {.rmr_context = theirs->rmr_context,
				  .target_address = theirs->address + offset};

	own.data = link->out + offset;
	own.data[len - 1] = 1;
	return write_to(mpi, rank, &own, len, remote, cookie_of(REQUEST_PACKET, rank, 0));
}

static struct credits *credits_of(struct mpi *mpi, unsigned rank)
{
	return (struct credits *)mpi->dat->credits.data + rank;
}

static int post_recv(struct mpi *mpi, unsigned rank, uint64_t index)
{
	DAT_LMR_TRIPLET own = {
		.lmr_context = mpi->dat->credits.lmr_context,
		.virtual_address = (uintptr_t)&credits_of(mpi, rank)->in[index],
		.segment_length = sizeof(uint64_t),
	};
	DAT_RETURN code = dat_ep_post_recv(mpi->dat->endpoints[rank], 1, &own,
					   cookie_of(0, rank, index), DAT_COMPLETION_DEFAULT_FLAG);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_post_recv", code);
}

static int dat_credit(struct mpi *mpi, unsigned rank)
{
	struct mpi_link *link = &mpi->peers[rank].link;
	struct credits *credits = credits_of(mpi, rank);
	uint64_t *count = &credits->out[credits->sent++ % DAT_RECVS];
	DAT_LMR_TRIPLET own = {.lmr_context = mpi->dat->credits.lmr_context,
			       .virtual_address = (uintptr_t)count,
			       .segment_length = sizeof(*count)};
	DAT_RETURN code;

	*count = link->taken;
	link->reported = link->taken;
	code = dat_ep_post_send(mpi->dat->endpoints[rank], 1, &own,
				cookie_of(REQUEST_CREDIT, rank, 0), DAT_COMPLETION_DEFAULT_FLAG);
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_post_send", code);
}

/* --- fragments --- */

static int free_region(DAT_LMR_HANDLE *lmr)
{
	DAT_RETURN code = dat_lmr_free(*lmr);

	*lmr = DAT_HANDLE_NULL;
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_free", code);
}

static int dat_expose(struct mpi *mpi, unsigned rank, unsigned index, unsigned char *data,
		      uint64_t len, struct mpi_grant *grant_out)
{
	struct memory memory;
	int rc = register_memory(mpi, data, len, &mpi->dat->targets[rank][index], &memory);

	*grant_out = (struct mpi_grant){.address = (uintptr_t)data, .key = memory.rmr_context};
	return rc;
}

static int dat_hide(struct mpi *mpi, unsigned rank, unsigned index)
{
	return free_region(&mpi->dat->targets[rank][index]);
}

static int dat_put(struct mpi *mpi, unsigned rank, unsigned index, unsigned char *data,
		   uint64_t len, struct mpi_grant grant)
{
	struct memory memory;
	DAT_RMR_TRIPLET remote = {.rmr_context = grant.key, .target_address = grant.address};
	int rc = register_memory(mpi, data, len, &mpi->dat->sources[rank][index], &memory);

	return rc == 0 ? write_to(mpi, rank, &memory, len, remote,
				  cookie_of(REQUEST_FRAGMENT, rank, index))
		       : rc;
}

/* --- completions --- */

/* 1: an event was taken; 0: there is none; or a negative errno. */
static int take(DAT_EVD_HANDLE evd, uint64_t *cookie_out)
{
	DAT_EVENT event;
	DAT_RETURN code = dat_evd_dequeue(evd, &event);
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;

	if (DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY)
		return 0;
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_evd_dequeue", code);
	if (event.event_number != DAT_DTO_COMPLETION_EVENT || data->status != DAT_DTO_SUCCESS) {
		tool_complain("transfer failed: %s", tool_event_text(event.event_number));
		return -ECONNRESET;
	}
	*cookie_out = data->user_cookie.as_64;
	return 1;
}

static int complete(struct mpi *mpi, uint64_t cookie)
{
	unsigned rank = cookie & 0xff;
	struct mpi_peer *peer = &mpi->peers[rank];

	switch ((enum request)(cookie >> 8 & 0xff)) {
	case REQUEST_PACKET:
		peer->link.completed++;
		break;
	case REQUEST_FRAGMENT:
		peer->placed++;
		return free_region(&mpi->dat->sources[rank][cookie >> 16]);
	case REQUEST_CREDIT:
		break;
	}
	return 0;
}

static int receive_credits(struct mpi *mpi, uint64_t cookie)
{
	unsigned rank = cookie & 0xff;
	uint64_t index = cookie >> 16;

	mpi->peers[rank].link.credited = credits_of(mpi, rank)->in[index];
	return post_recv(mpi, rank, index);
}

static int dat_progress(struct mpi *mpi)
{
	uint64_t cookie = 0;
	int rc;

	while ((rc = take(mpi->dat->session.request_evd, &cookie)) > 0) {
		rc = complete(mpi, cookie);
		if (rc != 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	while ((rc = take(mpi->dat->session.recv_evd, &cookie)) > 0) {
		rc = receive_credits(mpi, cookie);
		if (rc != 0)
			return rc;
	}
	return rc;
}

/* --- the connections --- */

static int dat_open(struct mpi *mpi)
{
	unsigned processes = mpi->member->processes;
	struct mpi_dat *dat = mpi->dat = calloc(1, sizeof(*dat));
	int rc;

	if (!dat)
		return -ENOMEM;
	rc = session_open(&dat->session, "soft-lo", false, CREW_TIMEOUT_MS);
	if (rc != 0)
		return rc;
	if (dat_evd_resize(dat->session.request_evd, (DAT_COUNT)(DAT_REQUESTS * processes)) !=
		    DAT_SUCCESS ||
	    dat_evd_resize(dat->session.recv_evd, (DAT_COUNT)(DAT_RECVS * processes)) !=
		    DAT_SUCCESS)
		return -EIO;
	rc = make_all_memory(mpi);
	for (unsigned i = 0; i < processes && rc == 0; i++) {
		if (i == mpi->member->rank)
			continue;
		rc = crew_endpoint(&dat->session, DAT_REQUESTS, DAT_RECVS, &dat->endpoints[i]);
		for (unsigned k = 0; k < DAT_RECVS && rc == 0; k++)
			rc = post_recv(mpi, i, k);
	}
	return rc == 0 ? crew_connect(mpi->member, &dat->session, dat->endpoints, dat->ours,
				      dat->theirs)
		       : rc;
}

/* The process ends afterwards, and its memory with it. */
static void dat_close(struct mpi *mpi)
{
	if (mpi->dat)
		session_close(&mpi->dat->session);
	free(mpi->dat);
}

const struct mpi_wire mpi_dat = {
	.open = dat_open,
	.close = dat_close,
	.step = mpi_packet_step,
	.progress = dat_progress,
	.post = dat_post,
	.credit = dat_credit,
	.expose = dat_expose,
	.hide = dat_hide,
	.put = dat_put,
};
