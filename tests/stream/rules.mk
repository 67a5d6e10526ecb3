# One answer whatever the budget; see check_stream.c.
$(B)/tests/check_stream: $(call obj,tests/stream/check_stream.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-stream
check-stream: $(B)/tests/check_stream ## one digest of logits at every budget [MODEL=FILE ARGS="--only qwen3moe"]
	$(RUN) $(B)/tests/check_stream $(ARGS) $(MODEL)
