// A slider beside the field of the latency budget: logarithmic, from the lowest measured latency to the highest.
// The field is what is sent; without this script the slider stays hidden.
const amounts = (slider) => [Number(slider.dataset.least), Number(slider.dataset.most)];
const rounded = (value) => Number(value.toPrecision(2)).toString();

const prepare = (slider) => {
  const field = slider.form.elements[slider.dataset.mirrors];
  const [least, most] = amounts(slider);
  if (!(least > 0 && most > least)) return;
  slider.hidden = false;
  const show = () => {
    const value = Number(field.value.replace(",", "."));
    if (value > 0) slider.value = String(100 * Math.log(value / least) / Math.log(most / least));
    slider.setAttribute("aria-valuetext", field.value ? `${field.value} ms` : "no budget");
  };
  slider.addEventListener("input", () => {
    // the ends are rounded outwards, so that the highest budget takes everything in
    const value = least * (most / least) ** (Number(slider.value) / 100);
    field.value = Number(slider.value) === 100 ? "" : rounded(value);
    slider.setAttribute("aria-valuetext", field.value ? `${field.value} ms` : "no budget");
  });
  field.addEventListener("input", show);
  show();
};

document.querySelectorAll("input[data-mirrors]").forEach(prepare);
