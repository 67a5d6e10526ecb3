# One answer whatever the threads, the batch and the tier; see check_digest.c.
$(B)/tests/check_digest: $(call obj,tests/bench/check_digest.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-digest
check-digest: $(B)/tests/check_digest ## one digest of logits on every tier, thread count and batch [MODEL=FILE ARGS="--only q4_k"]
	$(RUN) $(B)/tests/check_digest $(if $(MODEL),,--golden tests/golden/logits/digests.txt) $(ARGS) $(MODEL)
