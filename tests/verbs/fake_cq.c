// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's completion queues. */
#include "fake_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		channel = calloc(1, sizeof(*channel));
		channel->channel.context = context;
		channel->channel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return channel ? &channel->channel : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	pthread_mutex_lock(&fake_lock);
	fake_count(-1);
	pthread_mutex_unlock(&fake_lock);
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct fake_cq *cq = NULL;

	(void)comp_vector;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		cq = calloc(1, sizeof(*cq));
		cq->cq.context = context;
		cq->cq.channel = channel;
		cq->cq.cq_context = cq_context;
		cq->cq.cqe = cqe;
		cq->wc = calloc((size_t)cqe, sizeof(*cq->wc));
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return cq ? &cq->cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	pthread_mutex_lock(&fake_lock);
	fake_count(-1);
	pthread_mutex_unlock(&fake_lock);
	free(((struct fake_cq *)cq)->wc);
	free(cq);
	return 0;
}

void fake_cq_add(struct ibv_cq *ibv_cq, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;

	if (cq->tail - cq->head == (uint64_t)cq->cq.cqe)
		abort(); /* the provider reserves room for every completion */
	cq->wc[cq->tail++ % (uint64_t)cq->cq.cqe] = *wc;
	if (!cq->is_armed || !cq->cq.channel)
		return;
	cq->is_armed = false;
	cq->events++;
	fake_signal(cq->cq.channel->fd);
	((struct fake_channel *)cq->cq.channel)->cq = cq;
}

void fake_cq_clean(struct ibv_cq *ibv_cq, uint32_t qp_num)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;
	const uint64_t size = (uint64_t)cq->cq.cqe;
	uint64_t kept = cq->head;

	for (uint64_t i = cq->head; i != cq->tail; i++)
		if (cq->wc[i % size].qp_num != qp_num)
			cq->wc[kept++ % size] = cq->wc[i % size];
	cq->tail = kept;
}

int fake_poll_cq(struct ibv_cq *ibv_cq, int count, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;
	int found = 0;

	pthread_mutex_lock(&fake_lock);
	fake_count_cancellable();
	while (found < count && cq->head != cq->tail)
		wc[found++] = cq->wc[cq->head++ % (uint64_t)cq->cq.cqe];
	pthread_mutex_unlock(&fake_lock);
	return found;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int rc = 0;

	(void)solicited_only;
	pthread_mutex_lock(&fake_lock);
	if (fake_fails("ibv_req_notify_cq", EIO))
		rc = EIO;
	else
		((struct fake_cq *)cq)->is_armed = true;
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* Serves one queue at a time: a test's instance has one. */
int ibv_get_cq_event(struct ibv_comp_channel *ibv_channel, struct ibv_cq **cq, void **context)
{
	struct fake_channel *channel = (struct fake_channel *)ibv_channel;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	if (channel->cq && channel->cq->events) {
		channel->cq->events--;
		*cq = &channel->cq->cq;
		*context = NULL;
		rc = 0;
	} else {
		fake_unsignal(ibv_channel->fd);
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	(void)cq;
	(void)count;
}
